//! The processors of this node, which the machine numbers through, and those of its computer.

use gondwana_host::sys;
use gondwana_topology::{Machine, NodeId, ProcessorId, ProcessorSet};

/// Which processors of the computer stand for which ones of the node. Where the node counts as having fewer than its
/// computer, some stand for the same one; where it counts as having more, one stands for several.
#[derive(Debug)]
pub struct Processors {
    /// Of the machine, and of the computer.
    pairs: Vec<(ProcessorId, ProcessorId)>,
    own: ProcessorSet,
}

impl Processors {
    /// The processors of a node, on those of the computer that this process may use now.
    pub fn of(machine: &Machine, node: NodeId) -> Self {
        let own = machine.node(node).map(|node| node.processors).unwrap_or_default();
        let usable = sys::affinity(0).unwrap_or_default();
        let (of_machine, of_computer): (Vec<_>, Vec<_>) = (own.iter().collect(), usable.iter().collect());
        let count = match of_computer.len() {
            0 => 0,
            usable => usable.max(of_machine.len()),
        };
        let pair =
            |index: usize| (of_machine[index % of_machine.len()], of_computer[index % of_computer.len()]);
        Self { pairs: (0..count).map(pair).collect(), own }
    }

    /// All of this node, as the machine numbers them.
    pub fn own(&self) -> &ProcessorSet {
        &self.own
    }

    /// Those of the computer that stand for some of the machine's.
    pub fn on_computer(&self, processors: &ProcessorSet) -> ProcessorSet {
        self.pairs.iter().filter(|(own, _)| processors.contains(*own)).map(|(_, there)| *there).collect()
    }

    /// Those of the machine that some of the computer's stand for.
    pub fn of_computer(&self, processors: &ProcessorSet) -> ProcessorSet {
        self.pairs.iter().filter(|(_, there)| processors.contains(*there)).map(|(own, _)| *own).collect()
    }

    /// The machine's processor on which the calling thread is, one of those that it is bound to.
    pub fn here(&self) -> ProcessorId {
        let candidates = match sys::here() {
            Ok((there, _)) => self.of_computer(&ProcessorSet::only(there)),
            Err(_) => ProcessorSet::EMPTY,
        };
        let bound = super::threads::bound_processors().unwrap_or(self.own);
        let here = candidates.intersection(&bound).first().or(bound.intersection(&self.own).first());
        here.or(self.own.first()).unwrap_or_default()
    }
}
