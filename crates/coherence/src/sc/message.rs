//! What two [`Sc`](super::Sc) machines say to each other. Page contents travel beside it as plain bytes ("bulk").

use super::hold::Turn;
use crate::Page;
use crate::message::{Encoded, Kind};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// Messages of the `sc` protocol.
///
/// The manager of a page handles one request for it at a time, from `Request` to `Confirm`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScMessage {
    /// Asks the manager of `first` for that page and, where it is cheap, the pages after it. A node that is not the
    /// manager any more passes the message on.
    Request {
        /// The page that a thread waits for.
        first: Page,
        /// How many pages are wanted; all but the first are a guess.
        count: u32,
        /// For writing; else for reading.
        write: bool,
        /// The node that asks.
        requester: NodeId,
        /// The number of its present or next slice.
        slice: u32,
    },
    /// Manager to owner: serve this request.
    Forward {
        /// The page.
        page: Page,
        /// How many pages the request asked for; the answer repeats it.
        asked: u32,
        /// For writing: the owner gives the page up and the requester becomes owner.
        write: bool,
        /// The requester has no current copy.
        contents: bool,
        /// How many acknowledgements of invalidations the requester has to wait for.
        acks: u32,
        /// The node that asks.
        requester: NodeId,
        /// The number of its slice when it asked.
        slice: u32,
        /// The request has waited at the manager.
        kept: bool,
    },
    /// Answers a request. Bulk: the contents of the served pages, or nothing if the requester has them already or
    /// they are zero.
    Pages {
        /// The first page asked for.
        first: Page,
        /// How many were asked for.
        asked: u32,
        /// How many are in this answer (at least one).
        served: u32,
        /// The requester becomes owner.
        write: bool,
        /// The manager of these pages.
        manager: NodeId,
        /// Nobody touched the pages before.
        untouched: bool,
        /// How many acknowledgements of invalidations the requester has to wait for.
        acks: u32,
        /// The request has waited for a node that kept the page, or for another request.
        kept: bool,
    },
    /// Manager to a node with a copy: give it up and tell the writer.
    Invalidate {
        /// The page.
        page: Page,
        /// The node that will write, to which the acknowledgement goes.
        writer: NodeId,
        /// The number of its slice when it asked.
        slice: u32,
    },
    /// Answers `Invalidate`, to the writer.
    InvalidateAck {
        /// The page.
        page: Page,
        /// The invalidation has waited because its node kept the page.
        kept: bool,
    },
    /// Requester to manager: the request is served, the next may come.
    Confirm {
        /// The page.
        page: Page,
    },
    /// Tells the manager of these pages which node is to manage them. A node that is not the manager passes it on.
    Place {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// The node; `None` if it does not matter any more.
        home: Option<NodeId>,
    },
    /// The receiver is the manager of these pages from now on.
    Manage {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// Who owns them, without copies elsewhere; `None` if nobody touched them.
        owner: Option<NodeId>,
    },
}

/// Names of the kinds of these messages.
pub(super) const KINDS: &[&str] = &["sc"];

impl ScMessage {
    /// The page that its receiver is to give up, or to share, and whose turn it then is.
    pub(super) fn taken(&self) -> Option<(Page, Turn)> {
        match *self {
            Self::Forward { page, requester: node, slice, .. }
            | Self::Invalidate { page, writer: node, slice } => Some((page, Turn { slice, node })),
            _ => None,
        }
    }
}

impl Encoded for ScMessage {
    fn kind(&self) -> Kind {
        Kind(0)
    }
}
