//! How many signals may be under way.

use gondwana_topology::NodeId;
use std::sync::atomic::{AtomicU32, Ordering};

/// Of so many signals to a node in turn one is awaited.
///
/// The others need no answer, but what a node sends faster than another takes it stays in the sender's memory. The awaited one
/// comes behind all before it, so a thread has no more than these under way.
const AWAITED: u32 = 64;

/// Signals to conditions that this node has given, by the node that manages the condition.
pub(super) struct Signals(Box<[AtomicU32]>);

impl Signals {
    /// None yet, in a run of so many nodes.
    pub(super) fn new(nodes: u16) -> Self {
        Self((0..nodes).map(|_| AtomicU32::new(0)).collect())
    }

    /// One more signal goes to `server`: true if the caller must wait for the answer.
    pub(super) fn must_wait(&self, server: NodeId) -> bool {
        let before = self.0[usize::from(server.0)].fetch_add(1, Ordering::Relaxed);
        before % AWAITED == AWAITED - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_series_is_awaited_for_each_node() {
        let signals = Signals::new(2);
        for _ in 0..3 {
            for number in 1..=AWAITED {
                assert_eq!(signals.must_wait(NodeId(0)), number == AWAITED);
            }
            assert!(!signals.must_wait(NodeId(1)));
        }
    }
}
