use super::Object;
use gondwana_topology::NodeId;

/// What nodes tell each other about barriers, along the tree of nodes that belongs to the barrier's manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierMessage {
    /// To the parent: threads have arrived, and all that they wrote is released.
    Arrive {
        /// The barrier.
        barrier: Object,
        /// How many threads make an episode.
        count: u32,
        /// How many have arrived, besides those reported before.
        threads: u32,
    },
    /// To a child: the first `threads` of those that it reported may go on.
    Release {
        /// The barrier.
        barrier: Object,
        /// How many threads made the episode.
        count: u32,
        /// How many of them the child reported.
        threads: u32,
        /// One of them is the episode's serial thread.
        serial: bool,
        /// The child may keep back arrivals until there are so many.
        expected: u32,
    },
    /// To a child: all others of the episode have arrived. As soon as it has reported the missing ones, they may go on, the
    /// last of them as the serial thread, and as many may be kept back next time.
    Permit {
        /// The barrier.
        barrier: Object,
        /// How many threads make the episode.
        count: u32,
        /// How many of them are missing.
        threads: u32,
    },
    /// To the parent: the permit is not made use of.
    Decline {
        /// The barrier.
        barrier: Object,
    },
    /// To a child: keep back nothing until the next release.
    Hurry {
        /// The barrier.
        barrier: Object,
    },
}

/// A peer broke the protocol of barriers; the run can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {from} sent {message:?}, which the state of the barrier does not permit")]
pub struct BarrierViolation {
    /// Who sent the message.
    pub from: NodeId,
    /// What was sent.
    pub message: BarrierMessage,
}
