//! What two [`Sc`](super::Sc) machines say to each other. Page contents travel beside it as plain bytes ("bulk").

use crate::Page;
use crate::message::{Encoded, Kind};
use crate::slices::Turn;
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// Messages of the `sc` protocol.
///
/// The manager of a page handles one request for it at a time, from `Request` to `Confirm`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScMessage {
    /// Asks the manager of `first` for that page and, where they are with the same nodes, the pages after it. A node that is
    /// not the manager any more passes the message on.
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
        /// The first page.
        first: Page,
        /// How many pages to serve.
        count: u32,
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
    /// Answers a request, or the first part of it if the owner keeps the rest for a while. Bulk: the contents of the served
    /// pages, or nothing if the requester has them already or they are zero.
    Pages {
        /// The first page asked for.
        first: Page,
        /// How many were asked for, without what another answer will bring.
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
    /// Answers a request for pages that are common.
    Common {
        /// The first page asked for.
        first: Page,
        /// How many were asked for.
        asked: u32,
        /// How many of them are common (at least one).
        served: u32,
        /// The manager of these pages.
        manager: NodeId,
    },
    /// Manager to all others: these pages are common, and nobody had touched them before.
    Touched {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
    },
    /// Manager to a node with copies: give them up and tell the writer.
    Invalidate {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// The node that will write, to which the acknowledgement goes.
        writer: NodeId,
        /// The number of its slice when it asked.
        slice: u32,
    },
    /// Answers `Invalidate`, to the writer.
    InvalidateAck {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// The invalidation has waited because its node kept the pages.
        kept: bool,
    },
    /// Requester to manager: the request for these pages is served, the next may come.
    Confirm {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
    },
    /// Manager to a node that may keep the page from the request that is being served: another one waits behind that, whose turn is
    /// earlier. If the page is not kept from that one, it leaves.
    Hurry {
        /// The page.
        first: Page,
        /// The node that waits.
        requester: NodeId,
        /// The number of its slice when it asked.
        slice: u32,
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
    /// The first of the pages that its receiver is to give up, or to share, how many they are, and whose turn it then is.
    pub(super) fn taken(&self) -> Option<(Page, u32, Turn)> {
        match *self {
            Self::Forward { first, count, requester: node, slice, .. }
            | Self::Invalidate { first, count, writer: node, slice } => {
                Some((first, count, Turn { slice, node }))
            }
            _ => None,
        }
    }

    /// The pages that the message is about.
    pub(crate) fn pages(&self) -> (Page, u32) {
        match *self {
            Self::Request { first, count, .. }
            | Self::Forward { first, asked: count, .. }
            | Self::Pages { first, asked: count, .. }
            | Self::Common { first, asked: count, .. }
            | Self::Touched { first, count }
            | Self::Invalidate { first, count, .. }
            | Self::InvalidateAck { first, count, .. }
            | Self::Confirm { first, count }
            | Self::Place { first, count, .. }
            | Self::Manage { first, count, .. } => (first, count),
            Self::Hurry { first, .. } => (first, 1),
        }
    }

    /// Splits what [`ScMessage::taken`] names behind `count` pages, of more: what to do now and what later.
    pub(super) fn split(mut self, taken: u32) -> (Self, Self) {
        let mut later = self.clone();
        match (&mut self, &mut later) {
            (
                Self::Forward { count, asked, .. },
                Self::Forward { first: next, count: rest, asked: all, .. },
            ) => {
                (*next, *rest, *all) = (Page(next.0 + taken), *rest - taken, *all - taken);
                (*count, *asked) = (taken, taken);
            }
            (Self::Invalidate { count, .. }, Self::Invalidate { first: next, count: rest, .. }) => {
                (*next, *rest) = (Page(next.0 + taken), *rest - taken);
                *count = taken;
            }
            _ => (),
        }
        (self, later)
    }
}

impl Encoded for ScMessage {
    fn kind(&self) -> Kind {
        Kind(0)
    }
}
