//! Detects whether the kernel has killed a process because the nodes that it was bound to were full.
//!
//! Only the kernel's log reports that. The evidence without it: the kernel has killed a process, not at the limit of
//! a control group; those nodes have hardly more free memory than the process had; and other nodes have more.

use crate::{cgroup, sys, sysfs};
use gondwana_topology::{Bytes, NodeSet};
use std::path::Path;

/// The kernel's counters before the start of a program that is bound to certain nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Sets of nodes; some memory is bound to each.
    bound: Vec<NodeSet>,
    /// All nodes that this process may have memory from.
    allowed: NodeSet,
    /// Processes of this computer that were killed for lack of memory.
    ended: u64,
    /// How often control groups were at their limits.
    limited: u64,
}

impl Shortage {
    /// Starts to watch for a shortage on any of these sets of nodes; `None` if this process can have no memory
    /// elsewhere, or the kernel does not count killed processes (before Linux 4.13).
    #[must_use]
    pub fn watch(sets: impl IntoIterator<Item = NodeSet>) -> Option<Self> {
        let allowed = sys::allowed_nodes().ok()?;
        let mut bound: Vec<NodeSet> = vec![];
        for nodes in sets {
            if !nodes.contains_all(&allowed) && !bound.contains(&nodes) {
                bound.push(nodes);
            }
        }
        let (ended, limited) = (ended()?, cgroup::times_out_of_memory(Path::new("/")));
        (!bound.is_empty()).then_some(Self { bound, allowed, ended, limited })
    }

    /// The nodes whose lack of memory made the kernel kill a process since, if any. The process had at most `most`
    /// bytes, which are free now.
    #[must_use]
    pub fn found(&self, most: Bytes) -> Option<NodeSet> {
        let has_ended = ended().is_some_and(|now| now > self.ended);
        if !has_ended || cgroup::times_out_of_memory(Path::new("/")) > self.limited {
            return None;
        }
        let has_room_elsewhere = |nodes: &NodeSet| {
            let others = self.allowed.difference(nodes);
            others.iter().any(|node| !sysfs::is_full(node))
        };
        let were_full = |nodes: &&NodeSet| sysfs::are_full(nodes, most) && has_room_elsewhere(nodes);
        self.bound.iter().find(were_full).copied()
    }

    /// All nodes that this process may have memory from.
    #[must_use]
    pub fn allowed(&self) -> NodeSet {
        self.allowed
    }
}

/// How many processes the kernel has killed for lack of memory since boot.
pub(crate) fn ended() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::NodeId;

    #[test]
    fn memory_that_may_come_from_everywhere_is_not_watched() {
        let allowed = sys::allowed_nodes().unwrap();
        assert_eq!(Shortage::watch([]), None);
        assert_eq!(Shortage::watch([allowed]), None);
    }

    #[test]
    fn nothing_is_found_where_no_process_was_ended() {
        let Some(first) = sys::allowed_nodes().unwrap().first().filter(|_| ended().is_some()) else { return };
        let watch = Shortage::watch([NodeSet::EMPTY, NodeSet::only(NodeId(63)), NodeSet::EMPTY]).unwrap();
        assert_eq!(watch.bound.len(), 2);
        assert!(watch.allowed().contains(first));
        assert_eq!(watch.found(Bytes(u64::MAX)), None);
    }
}
