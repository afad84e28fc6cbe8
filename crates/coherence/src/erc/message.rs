//! What two [`Erc`](super::Erc) machines say to each other. Page contents travel beside it as plain bytes ("bulk").

use crate::Page;
use crate::message::{Encoded, Kind};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// Messages of the `erc` protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErcMessage {
    /// Asks the manager of pages for them.
    Request {
        /// The page that a thread waits for.
        first: Page,
        /// How many pages are wanted; all but the first are a guess.
        count: u32,
        /// To write them; else to read them.
        write: bool,
    },
    /// Manager to owner: serve this request. Who asks to write is the next owner, which later requests are forwarded to.
    Forward {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// To write them.
        write: bool,
        /// The node that asks.
        requester: NodeId,
    },
    /// Manager to requester: it owns these pages, which no thread has touched, so that they are zero.
    Untouched {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
    },
    /// Owner to requester. Bulk: the contents, or nothing if the next owner has a current copy.
    Pages {
        /// The first page.
        first: Page,
        /// How many there are.
        count: u32,
        /// The requester owns the pages; no other node has a copy.
        write: bool,
    },
    /// Owner to a node with copies: give them up.
    Invalidate {
        /// The number of the round at the owner.
        round: u64,
        /// The pages, in ascending order.
        pages: Vec<Page>,
    },
    /// Answers `Invalidate`.
    InvalidateAck {
        /// The number of the round.
        round: u64,
    },
}

/// Names of the kinds of these messages.
pub(super) const KINDS: &[&str] = &["fetch", "pages", "notices", "notice_acks"];

impl Encoded for ErcMessage {
    fn kind(&self) -> Kind {
        Kind(match self {
            Self::Request { .. } | Self::Forward { .. } => 0,
            Self::Untouched { .. } | Self::Pages { .. } => 1,
            Self::Invalidate { .. } => 2,
            Self::InvalidateAck { .. } => 3,
        })
    }
}
