//! The coherence protocol between nodes: MOSI, a full-map blocking directory at each line's home, three hops to dirty data
//! in a third node, and writebacks in three phases (WildFire, section 4 and appendix).
//!
//! Per line there is one [`Home`], in the node whose memory has the line, and one [`Agent`] in each node: WildFire's
//! request and slave agents in one. Both are state machines: a message in, messages out. Messages may overtake each other.
//!
//! The home works on one request at a time (*blocking*): the next one waits until the requester has said that the last one
//! is complete. So what the directory says of a line is always what is in the nodes, except during a request, and nodes
//! that drop a shared line silently stay in it.

mod agent;
mod home;
mod message;

pub use agent::Agent;
pub use home::{Entry, Home};
pub use message::{Answer, Demand, Message, Request};

/// The way of a line from an owner to a requester that are neither of them the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hops {
    /// Requester, home, owner, requester: answers go to the requester (WildFire).
    Three,
    /// Requester, home, owner, home, requester: the home collects the answers (NUMA-Q).
    Four,
}

/// The number of a node.
pub type Node = u8;

/// What a cache, or a node as a whole, may do with a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Nothing.
    #[default]
    Invalid,
    /// Read it.
    Shared,
    /// Read it; it supplies the line to others, and writes it back.
    Owned,
    /// Read and write it: nobody else has it.
    Modified,
}

/// A message that the protocol does not allow for, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{to} has {state} and receives {message:?} from node {from}")]
pub struct Violation {
    /// Which machine received it.
    pub to: &'static str,
    /// What it was doing.
    pub state: String,
    /// Who sent it.
    pub from: Node,
    /// What.
    pub message: Message,
}
