//! What homes and agents say to each other. The names in brackets are WildFire's.

use super::Node;

/// What an agent wants of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// To read the line (R_RTS, read to share).
    Read,
    /// To be the only one that has it (R_RTO, read to own).
    Own,
    /// To give ownership and the contents to the home (R_WB).
    WriteBack,
}

/// What the home wants of an agent on behalf of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Demand {
    /// Send the line to the requester (H_RTS).
    Supply,
    /// Send the line to the requester and forget it (H_RTO).
    SupplyAndInvalidate,
    /// Forget it, and tell the requester (H_INV).
    Invalidate,
}

/// To whom an agent answers a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// To the requester, which gets so many replies in all.
    Requester {
        /// Who that is.
        requester: Node,
        /// How many replies it gets.
        replies: u8,
    },
    /// To the home, which collects the answers.
    Home,
}

/// A message about one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// Requester to home.
    Request(Request),
    /// Home to an agent.
    Demand {
        /// What the agent is to do.
        demand: Demand,
        /// Who waits for it.
        answer: Answer,
    },
    /// Agent to home, which collects answers: done.
    Return {
        /// True if the line's contents are in it.
        data: bool,
    },
    /// Agent, or home that has collected all answers, to requester (S_DATA, S_ACK).
    Reply {
        /// True if the line's contents are in it.
        data: bool,
        /// How many replies the requester gets in all.
        replies: u8,
    },
    /// Home to a requester that needs nobody's reply: it is the owner by now; or it may write the line back (H_ACK).
    Grant,
    /// Home to a requester that is no longer the owner: there is nothing to write back.
    Cancel,
    /// Requester to home: the request is complete, the next one may begin (R_CMP).
    Complete,
    /// Requester to home: the contents, after a grant of a writeback.
    WriteBackData {
        /// True if the node still has the line, shared.
        keeps: bool,
    },
}

impl Message {
    /// True for what asks a node for something; the others answer, or tell the home of an end.
    #[inline]
    #[must_use]
    pub fn is_request(self) -> bool {
        matches!(self, Self::Request(_) | Self::Demand { .. })
    }

    /// True for what agents send to the home.
    #[inline]
    #[must_use]
    pub fn is_for_home(self) -> bool {
        matches!(self, Self::Request(_) | Self::Return { .. } | Self::Complete | Self::WriteBackData { .. })
    }
}
