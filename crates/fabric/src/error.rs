use gondwana_topology::NodeId;
use std::{io, net::SocketAddr, time::Duration};
use thiserror::Error;

/// Why a message was not accepted.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// The head is longer than [`crate::MAX_HEAD`]; its length in bytes.
    #[error("a message head of {0} bytes is too long")]
    HeadTooLong(usize),
    /// The bulk data is longer than [`crate::MAX_BULK`]; its length in bytes.
    #[error("bulk data of {0} bytes is too long for one message")]
    BulkTooLong(usize),
    /// The destination is the sender itself, or not a node of the run.
    #[error("node {0} is not a peer of this node")]
    NoSuchPeer(NodeId),
    /// The destination was lost before.
    #[error("node {0} is lost")]
    Lost(NodeId),
}

/// Something that happened to the fabric itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// No more messages will come from this node or reach it. Reported once for each node.
    Lost(NodeId, LostReason),
}

/// How a peer was lost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LostReason {
    /// The peer closed the connection: it ended, normally or not.
    #[error("it closed the connection")]
    Closed,
    /// Its computer has acknowledged nothing for too long, or cannot be reached. If only the peer had ended, its
    /// kernel would have closed the connection.
    #[error("its computer does not answer ({0})")]
    Silent(String),
    /// The operating system reported another error on the connection.
    #[error("{0}")]
    Failed(String),
    /// The received bytes cannot come from a node of this run.
    #[error("what arrived from it is damaged: {0}")]
    Damaged(&'static str),
}

/// Why the shared segment could not be made or joined.
#[derive(Debug, Error)]
pub enum SegmentError {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system answered.
        source: io::Error,
    },
    /// The parameters make no segment: the count of nodes is not in 2 to [`gondwana_topology::MAX_NODES`], the
    /// ring size not a power of two of sufficient size, or the node not below the count.
    #[error("a segment of {nodes} nodes with rings of {ring_bytes} bytes can't be made")]
    Parameters {
        /// The requested number of nodes.
        nodes: usize,
        /// The requested size of each ring, in bytes.
        ring_bytes: usize,
    },
    /// The descriptor is not a segment made by this version for this number of nodes.
    #[error("the descriptor is not a segment for {nodes} nodes made by this version of the program")]
    Mismatch {
        /// Count of nodes expected.
        nodes: usize,
    },
    /// Another process attached as this node before.
    #[error("node {0} is attached already")]
    Taken(NodeId),
}

/// Why the connections between the nodes could not be made.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system answered.
        source: io::Error,
    },
    /// The node is not one of the peers, or there are too few or too many of them.
    #[error("node {node} can't be one of {nodes} nodes")]
    Parameters {
        /// This node.
        node: NodeId,
        /// Count of addresses given.
        nodes: usize,
    },
    /// The peer speaks another version of the protocol, or belongs to another run.
    #[error("node {node} at {address} refuses the connection: {why}")]
    Refused {
        /// The peer.
        node: NodeId,
        /// Its address.
        address: SocketAddr,
        /// The reason that the peer sent.
        why: String,
    },
    /// Not all peers were connected and authenticated in time.
    #[error("no connection to {} within {waited:?}: {last}", list(missing))]
    Timeout {
        /// The peers that are missing.
        missing: Vec<NodeId>,
        /// How long was waited.
        waited: Duration,
        /// The last error.
        last: String,
    },
}

/// The first of them by their numbers.
fn list(nodes: &[NodeId]) -> String {
    const NAMED: usize = 8;
    let names: Vec<_> = nodes.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("node{} {}{more}", if nodes.len() == 1 { "" } else { "s" }, names.join(", "))
}
