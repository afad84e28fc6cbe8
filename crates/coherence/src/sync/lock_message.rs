use super::Object;
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// What nodes tell each other about mutex tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LockMessage {
    /// To the manager: the sender wants the token. `attempt`: for a trylock, which must not wait for a holder.
    Request {
        /// The mutex.
        object: Object,
        /// For a trylock.
        attempt: bool,
    },
    /// From the manager to the node that asked last before: when you are done, pass the token to `to`.
    Pass {
        /// The mutex.
        object: Object,
        /// Who gets the token next.
        to: NodeId,
        /// `to` wants to hear at once if it must wait.
        attempt: bool,
    },
    /// The token itself. All that its former holders wrote is released.
    Token {
        /// The mutex.
        object: Object,
    },
    /// To the node whose `attempt` can't be met at once. The token will come nevertheless.
    Busy {
        /// The mutex.
        object: Object,
    },
}

impl LockMessage {
    /// The mutex that the message is about.
    #[must_use]
    pub fn object(&self) -> Object {
        match *self {
            Self::Request { object, .. }
            | Self::Pass { object, .. }
            | Self::Token { object }
            | Self::Busy { object } => object,
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
