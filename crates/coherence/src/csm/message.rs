//! What two [`Csm`](super::Csm) machines say to each other. Page contents and diffs travel beside it as plain bytes ("bulk").

use super::History;
use crate::message::{Encoded, Kind};
use crate::{Page, Violation};
use gondwana_topology::{NodeId, NodeSet};
use serde::{Deserialize, Serialize};

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
        /// Their pages, where pages are ordered: what comes about them from now on is about later changes.
        in_order: Vec<Page>,
        /// How many `Notices` messages were sent on behalf of them, each of which will be acknowledged.
        notices: u32,
        /// Pages whose home moves to the receiver, in ascending order.
        grants: Vec<HomeGrant>,
    },
    /// Origin to those that keep diffs of this flush: all have been told of what it changes, which may be shown. Only where pages are
    /// ordered.
    Commit {
        /// The number of the flush at its origin.
        flush: u64,
    },
    /// Write notices: these pages changed; copies must not be used after the next acquire. Copies of pages that are updated may.
    /// Bulk: the diffs of all updates, one after the other.
    Notices {
        /// The number of the flush.
        flush: u64,
        /// The node that wrote, to which the acknowledgement goes.
        origin: NodeId,
        /// The pages.
        pages: Vec<Page>,
        /// What changed on other pages.
        updates: Vec<Update>,
    },
    /// Answers one `Notices` message, to its origin.
    NoticeAck {
        /// The number of the flush.
        flush: u64,
        /// The sender keeps the updates until the flush is committed.
        keeps: bool,
    },
    /// Home to all others: these pages are common.
    Common {
        /// Runs of pages, ascending: the first page of each, and how many there are.
        runs: Vec<(Page, u32)>,
    },
    /// Home to all others: these pages are common, and nobody had touched them before.
    Touched {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
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
    Raced,
    /// The pages are common. No bulk.
    Common,
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

/// One page in [`CsmMessage::Notices`] of which the message has the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Update {
    /// The page.
    pub page: Page,
    /// Bytes of the bulk that belong to it.
    pub length: u32,
}

/// The bulk of a message in pieces of these lengths.
///
/// # Errors
/// If they are not together as long as the bulk.
pub(super) fn pieces<'a>(
    message: &'static str,
    lengths: impl Iterator<Item = u32> + Clone,
    mut bulk: &'a [u8],
) -> Result<impl Iterator<Item = &'a [u8]>, Violation> {
    if lengths.clone().map(u64::from).sum::<u64>() != bulk.len() as u64 {
        return Err(Violation::Contents { message });
    }
    Ok(lengths.map(move |length| {
        let (piece, rest) = bulk.split_at(length as usize);
        bulk = rest;
        piece
    }))
}

/// Names of the kinds of these messages.
pub(super) const KINDS: &[&str] =
    &["fetch", "pages", "diffs", "diff_acks", "notices", "notice_acks", "homes", "commons", "commits"];

impl Encoded for CsmMessage {
    fn kind(&self) -> Kind {
        Kind(match self {
            Self::Fetch { .. } => 0,
            Self::Pages { .. } => 1,
            Self::Diffs { .. } => 2,
            Self::DiffAck { .. } => 3,
            Self::Notices { .. } => 4,
            Self::NoticeAck { .. } => 5,
            Self::Place { .. } | Self::Placed { .. } => 6,
            Self::Common { .. } | Self::Touched { .. } => 7,
            Self::Commit { .. } => 8,
        })
    }
}
