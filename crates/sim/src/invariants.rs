//! What must be so whenever no access is under way.

use crate::lines::NOBODY;
use crate::machine::Machine;
use gondwana_coherence::directory::{Node, State};
use std::collections::HashSet;

impl Machine {
    /// Finds the first line of which caches, node states and directory disagree.
    ///
    /// # Errors
    /// What is wrong, in words: two owners, a cache with more rights than its node, a directory that misses a cache.
    pub fn check(&self) -> Result<(), String> {
        for (number, home, line, entry) in self.lines.all() {
            let wrong = |what: &str| Err(format!("line {number:#x} with its home in node {home}: {what}"));
            let mut owners = vec![];
            for (processor, cache) in self.l2.iter().enumerate() {
                let (state, node) =
                    (cache.state(number, self.lines.colour_of(number).unwrap_or(0)), self.node_of[processor]);
                let held = line.holders >> processor & 1 == 1;
                if held != (state != State::Invalid) {
                    return wrong(&format!("processor {processor} has {state:?}, but holds it: {held}"));
                }
                if matches!(state, State::Owned | State::Modified) {
                    owners.push(processor);
                }
                if state != State::Invalid && entry.state(node) == State::Invalid {
                    return wrong(&format!("processor {processor} has it, and node {node} has not"));
                }
                if state == State::Modified && entry.state(node) != State::Modified {
                    return wrong(&format!("processor {processor} may write it, and node {node} may not"));
                }
                if state == State::Modified && line.holders.count_ones() != 1 {
                    return wrong(&format!("processor {processor} may write it while others have it"));
                }
            }
            match owners[..] {
                [] if line.owner == NOBODY => {
                    if entry.owner != home && !self.keeps(number, entry.owner) {
                        return wrong(&format!("node {} owns it, and no cache there", entry.owner));
                    }
                }
                [owner] if usize::from(line.owner) == owner && self.node_of[owner] == entry.owner => {}
                _ => return wrong(&format!("owners {owners:?}, and the directory says {entry:?}")),
            }
            if entry.sharers >> entry.owner & 1 == 0 {
                return wrong("its owner is no sharer");
            }
        }
        self.check_far()?;
        self.check_replicas()?;
        self.check_inclusion()
    }

    /// True if a node has a line in a replica, or in its far memory cache.
    fn keeps(&self, line: u64, node: Node) -> bool {
        self.lines.place_of(line).is_some_and(|place| self.has_replica(node, place))
            || self.is_far(line, node)
    }

    /// True if the far memory cache of a node has the block of a line.
    fn is_far(&self, line: u64, node: Node) -> bool {
        let colour = self.lines.colour_of(line).unwrap_or(0);
        let far = self.nodes[usize::from(node)].far.as_ref();
        far.is_some_and(|far| far.has(line >> self.block_shift, colour >> self.block_shift))
    }

    /// Far memory caches have what the processors' caches of their nodes have of other nodes' memory, and nothing of which
    /// the directory does not know.
    fn check_far(&self) -> Result<(), String> {
        for (node, parts) in (0..).zip(&self.nodes) {
            let Some(far) = &parts.far else { continue };
            let mut lines = 0;
            for (number, home, line, entry) in self.lines.all() {
                let wrong =
                    |what: &str| Err(format!("far memory cache of node {node}, line {number:#x}: {what}"));
                if self.is_far(number, node) {
                    lines += 1;
                    if home == node {
                        return wrong("it is of the node's own memory");
                    }
                    if entry.state(node) == State::Invalid {
                        return wrong("the directory says that the node has not got it");
                    }
                } else if home != node
                    && line.holders & self.members[usize::from(node)] != 0
                    && !self.keeps(number, node)
                {
                    return wrong("a processor's cache has it, and the far memory cache has not");
                }
            }
            if lines != far.count() << self.block_shift {
                return Err(format!("the far memory cache of node {node} has blocks of no page"));
            }
        }
        Ok(())
    }

    /// The second caches have all that the first ones have.
    fn check_inclusion(&self) -> Result<(), String> {
        let known: HashSet<u64> = self.lines.all().map(|(number, ..)| number).collect();
        for (processor, (port, l2)) in self.ports.iter().zip(&self.l2).enumerate() {
            for (line, writable) in port.l1.held() {
                let address = line << self.l1_shift;
                if port.l1.is_awake(line) && !self.tlbs.get(processor).is_none_or(|tlb| tlb.has(address)) {
                    return Err(format!(
                        "processor {processor}: line {line:#x} is fast without a translation"
                    ));
                }
                let outer = line >> (self.line_shift - self.l1_shift);
                let state = l2.state(outer, self.lines.colour_of(outer).unwrap_or(0));
                if state == State::Invalid || writable && state != State::Modified {
                    return Err(format!(
                        "processor {processor}: line {outer:#x} is {state:?} in the second cache, \
                         and in the first one writable: {writable}"
                    ));
                }
            }
            if let Some(held) = l2.held().find(|held| !known.contains(&held.line)) {
                return Err(format!("processor {processor} has line {:#x} of no page", held.line));
            }
        }
        Ok(())
    }

    /// What a node may do with the line of an address, as the directory has it; none if its page was never touched.
    #[must_use]
    pub fn node_state(&self, address: u64, node: Node) -> Option<State> {
        let number = address >> self.line_shift;
        let mut lines = self.lines.all();
        lines.find(|(line, ..)| *line == number).map(|(.., entry)| entry.state(node))
    }

    /// What a processor's second cache may do with the line of an address.
    #[must_use]
    pub fn cache_state(&self, address: u64, processor: usize) -> State {
        let line = address >> self.line_shift;
        let colour = self.lines.colour_of(line);
        colour.map_or(State::Invalid, |colour| self.l2[processor].state(line, colour))
    }
}
