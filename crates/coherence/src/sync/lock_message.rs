use super::{Object, Turn};
use gondwana_topology::NodeId;

/// What nodes tell each other about mutex tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMessage {
    /// To the manager: the sender wants the token.
    Request {
        /// The mutex.
        object: Object,
        /// The latest of the sender's trylocks, if any waits: see `Ask`.
        attempt: Option<u64>,
        /// The number of the sender's present or next slice.
        slice: u32,
    },
    /// From the manager to the node that asked last before: when you are done, pass the token on.
    Pass {
        /// The mutex.
        object: Object,
        /// Who gets the token next.
        next: Turn,
        /// As if an `Ask` came along.
        attempt: Option<u64>,
    },
    /// The token itself. All that its former holders wrote is released.
    Token {
        /// The mutex.
        object: Object,
        /// It has stayed for a slice of the sender.
        kept: bool,
        /// The mutex is common: the receiver does not get it, and whoever asks the receiver is told the same.
        common: bool,
    },
    /// From the manager: tell `to` if a thread of yours holds the mutex, now or as soon as one gets it.
    Ask {
        /// The mutex.
        object: Object,
        /// A node with a trylock.
        to: NodeId,
        /// The latest of its trylocks.
        attempt: u64,
    },
    /// To the manager: the sender awaits the token itself, so the node before it in line is to be asked.
    AskBefore {
        /// The mutex.
        object: Object,
        /// As in `Ask`.
        to: NodeId,
        /// As in `Ask`.
        attempt: u64,
    },
    /// A thread of the sender has had the mutex since `attempt` began. The token comes nevertheless.
    Busy {
        /// The mutex.
        object: Object,
        /// The trylock that was asked for.
        attempt: u64,
    },
}

impl LockMessage {
    /// The mutex that the message is about.
    #[must_use]
    pub fn object(&self) -> Object {
        match *self {
            Self::Request { object, .. }
            | Self::Pass { object, .. }
            | Self::Token { object, .. }
            | Self::Ask { object, .. }
            | Self::AskBefore { object, .. }
            | Self::Busy { object, .. } => object,
        }
    }
}

/// A peer broke the protocol of lock tokens; the run can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {from} sent {message:?}, which the state of the mutex does not permit")]
pub struct LockViolation {
    /// Who sent the message.
    pub from: NodeId,
    /// What was sent.
    pub message: LockMessage,
}
