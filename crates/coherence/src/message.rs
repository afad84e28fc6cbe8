//! The headers of all coherence messages. Page contents and diffs travel beside them as plain bytes ("bulk").

use crate::Page;
use crate::csm::History;
use gondwana_topology::{NodeId, NodeSet};
use serde::{Deserialize, Serialize};

/// A coherence message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Message {
    /// A message between two [`Csm`](crate::Csm) machines.
    Csm(CsmMessage),
    /// A message between two [`Sc`](crate::Sc) machines.
    Sc(ScMessage),
}

/// Messages of the `csm` protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CsmMessage {
    /// Asks the home of `first` for that page and, where it is cheap, the pages after it. A node that is not the
    /// home passes the message on.
    Fetch {
        /// The page that a thread waits for.
        first: Page,
        /// How many pages are wanted; all but the first are a guess.
        count: u32,
        /// The thread wants to write and has no unflushed writes in the page: the home may move.
        write: bool,
        /// The node that asks.
        requester: NodeId,
        /// The last flush of the requester that is complete.
        completed: u64,
    },
    /// Answers a fetch with the longest run of pages that the sender could serve alike.
    Pages {
        /// The first page asked for.
        first: Page,
        /// How many were asked for.
        asked: u32,
        /// How many are in this answer (at least one).
        served: u32,
        /// What the requester gets.
        grant: Grant,
    },
    /// Writes of `origin` for the page's home. Bulk: the diffs of all entries, one after the other.
    Diffs {
        /// The number of the flush at its origin.
        flush: u64,
        /// The node that wrote.
        origin: NodeId,
        /// The last flush of the origin that is complete.
        completed: u64,
        /// One entry for each page, in ascending order.
        entries: Vec<DiffEntry>,
    },
    /// Answers `Diffs`: these entries are in force.
    DiffAck {
        /// The number of the flush.
        flush: u64,
        /// How many entries this acknowledges.
        entries: u32,
        /// How many `Notices` messages were sent on behalf of them, each of which will be acknowledged.
        notices: u32,
        /// Pages whose home moves to the receiver, in ascending order.
        grants: Vec<HomeGrant>,
    },
    /// Write notices: these pages changed; copies must not be used after the next acquire.
    Notices {
        /// The number of the flush.
        flush: u64,
        /// The node that wrote, to which the acknowledgement goes.
        origin: NodeId,
        /// The pages, in ascending order.
        pages: Vec<Page>,
    },
    /// Answers one `Notices` message, to its origin.
    NoticeAck {
        /// The number of the flush.
        flush: u64,
    },
    /// Tells the home of these pages which node is to be their home. A node that is not the home passes it on.
    Place {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// The node; `None` if homes may move as they like again.
        home: Option<NodeId>,
        /// Threads may have used the pages.
        used: bool,
    },
    /// The receiver is home of these pages from now on, and stays it. Bulk: the contents, or nothing if nobody
    /// touched the pages.
    Placed {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
    },
}

/// What a requester gets with [`CsmMessage::Pages`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Grant {
    /// Copies; the sender stays home and counts the requester among the sharers. Bulk: the contents.
    Copy,
    /// The home moves to the requester, with each page's history. Bulk: the contents.
    Home(Vec<History>),
    /// The requester answers for the pages from now on: nobody touched them before, so that they are zero. No bulk.
    Untouched,
    /// As `Untouched`, and the home is to stay there.
    Placed,
    /// The requester has become home with [`CsmMessage::Placed`] while it asked. No bulk.
    Crossed,
}

/// One page in [`CsmMessage::DiffAck`] whose home moves to the origin of the diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HomeGrant {
    /// The page.
    pub page: Page,
    /// Its history.
    pub history: History,
    /// The nodes that were sent a notice about this diff.
    pub notified: NodeSet,
}

/// One page in [`CsmMessage::Diffs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DiffEntry {
    /// The page.
    pub page: Page,
    /// Bytes of the bulk that belong to it.
    pub length: u32,
    /// The origin keeps a copy that lacks nothing but what it will have notices of: it could become home.
    pub valid: bool,
}

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
    },
    /// Manager to a node with a copy: give it up and tell the writer.
    Invalidate {
        /// The page.
        page: Page,
        /// The node that will write, to which the acknowledgement goes.
        writer: NodeId,
    },
    /// Answers `Invalidate`, to the writer.
    InvalidateAck {
        /// The page.
        page: Page,
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
