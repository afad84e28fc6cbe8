//! Maps the processors of this node, which are numbered across the run, to those of its computer.

use gondwana_host::sys;
use gondwana_rset::RSet;
use gondwana_topology::{Machine, NodeId, ProcessorId, ProcessorSet};
use std::cell::Cell;

thread_local! {
    /// The binding of the calling thread, if there is one.
    pub static BOUND: Cell<Option<RSet>> = const { Cell::new(None) };
}

/// The mapping between processors of the computer and of the node. If the node has fewer processors than its
/// computer, several map to the same; if it has more, one maps to several.
#[derive(Debug)]
pub(super) struct Processors {
    /// Of the machine, and of the computer.
    pairs: Vec<(ProcessorId, ProcessorId)>,
    own: ProcessorSet,
}

impl Processors {
    /// The processors of a node, on those of the computer that this process may use now.
    pub(super) fn of(machine: &Machine, node: NodeId) -> Self {
        let own = machine.node(node).map(|node| node.processors).unwrap_or_default();
        Self::new(own, sys::affinity(0).unwrap_or_default())
    }

    fn new(own: ProcessorSet, usable: ProcessorSet) -> Self {
        let (of_machine, of_computer): (Vec<_>, Vec<_>) = (own.iter().collect(), usable.iter().collect());
        let count = match (of_machine.len(), of_computer.len()) {
            (0, _) | (_, 0) => 0,
            (own, usable) => own.max(usable),
        };
        let pair =
            |index: usize| (of_machine[index % of_machine.len()], of_computer[index % of_computer.len()]);
        Self { pairs: (0..count).map(pair).collect(), own }
    }

    /// All of this node, as the machine numbers them.
    pub(super) fn own(&self) -> &ProcessorSet {
        &self.own
    }

    /// The computer's processors for some of the machine's.
    pub(super) fn on_computer(&self, processors: &ProcessorSet) -> ProcessorSet {
        self.pairs.iter().filter(|(own, _)| processors.contains(*own)).map(|(_, there)| *there).collect()
    }

    /// The machine's processors for some of the computer's.
    pub(super) fn of_computer(&self, processors: &ProcessorSet) -> ProcessorSet {
        self.pairs.iter().filter(|(_, there)| processors.contains(*there)).map(|(own, _)| *own).collect()
    }

    /// The machine's processor on which the calling thread is, one of those that it is bound to.
    pub(super) fn here(&self) -> ProcessorId {
        let candidates = match sys::here() {
            Ok((there, _)) => self.of_computer(&ProcessorSet::only(there)),
            Err(_) => ProcessorSet::EMPTY,
        };
        let bound = BOUND.get().map_or(self.own, |rset| *rset.processors());
        let here = candidates.intersection(&bound).first().or(bound.intersection(&self.own).first());
        here.or(self.own.first()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ProcessorSet {
        text.parse().unwrap()
    }

    #[test]
    fn as_many_stand_for_each_other_in_order() {
        let processors = Processors::new(set("4-5"), set("1,3"));
        assert_eq!(processors.on_computer(&set("5")), set("3"));
        assert_eq!(processors.on_computer(&set("0-4")), set("1"));
        assert_eq!(processors.of_computer(&set("0-1")), set("4"));
    }

    #[test]
    fn none_is_left_out_where_numbers_differ() {
        let few = Processors::new(set("8"), set("0-2"));
        assert_eq!((few.on_computer(&set("8")), few.of_computer(&set("2"))), (set("0-2"), set("8")));
        let many = Processors::new(set("8-10"), set("0-1"));
        assert_eq!((many.on_computer(&set("10")), many.on_computer(&set("9"))), (set("0"), set("1")));
        assert_eq!(many.of_computer(&set("0")), set("8,10"));
    }

    #[test]
    fn the_calling_thread_is_on_one_of_them() {
        assert_eq!(Processors::new(set("7"), sys::affinity(0).unwrap()).here(), ProcessorId(7));
    }
}
