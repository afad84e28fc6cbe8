use super::ObjectKey;
use super::object_states::ObjectState;
use super::request::{Request, Ticket};
use super::resting::Rest;
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// What nodes tell each other about objects that do not rest at their managers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeeperMessage {
    pub(super) key: ObjectKey,
    pub(super) what: About,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum About {
    /// From the manager: the object rests with you. All that threads did with it so far is released.
    Keep(Rest),
    /// From the manager: you may do what does not change the object for others.
    Share,
    /// From the manager: give back what you have of the object.
    Recall,
    /// To the manager: the sender has it no longer. All that its threads did with it is released.
    Return {
        /// Of a keeper: the object as it left it, if anybody has used it.
        state: Option<ObjectState>,
        /// Of a node that shared a lock: how often its threads have locked it for reading and not unlocked it.
        readers: u32,
        /// What threads did with it without a message, roughly.
        uses: u32,
    },
    /// From the manager: you keep the object that you have sent this request about.
    Back(Ticket, Request),
}

impl KeeperMessage {
    /// True if its receiver learns of what threads of the sender did with the object.
    pub(crate) fn tells(&self) -> bool {
        !matches!(self.what, About::Recall)
    }
}

/// A peer broke the protocol of resting objects; the run can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {from} sent {message:?}, which the state of the object does not permit")]
pub struct KeeperViolation {
    /// Who sent the message.
    pub from: NodeId,
    /// What was sent.
    pub message: Box<KeeperMessage>,
}
