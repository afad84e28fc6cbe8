//! What a node knows of one page.

use crate::page_table::{self, Flags};
use crate::slab::NO_RECORD;
use crate::{Layout, Page};
use gondwana_topology::NodeId;

/// What this node has of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErcState {
    /// Nothing.
    None,
    /// A copy to read.
    Read,
    /// Owner; threads only read, and other nodes may have copies.
    Clean,
    /// Owner; threads write, and other nodes have copies, which they give up at the next release.
    Dirty,
    /// Owner; threads write, and no other node has a copy.
    Exclusive,
}

impl ErcState {
    /// True if this node owns the page.
    #[must_use]
    pub fn is_owner(self) -> bool {
        matches!(self, Self::Clean | Self::Dirty | Self::Exclusive)
    }

    pub(super) fn is_writable(self) -> bool {
        matches!(self, Self::Dirty | Self::Exclusive)
    }
}

/// A request for the page is under way.
pub(super) const ASKED: u8 = 1;
/// Came for a thread that perhaps has not used it yet.
pub(super) const HELD: u8 = 2;

/// The owner of a page that no thread has touched.
pub(super) const NOBODY: NodeId = NodeId(u16::MAX);

/// 16 bytes a page. The record of a page is the set of nodes with copies, at the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageEntry {
    /// The last round in which this node, the owner, invalidated copies of the page.
    pub round: u64,
    record: u32,
    /// At the manager: the owner, or the node that will be it once earlier requests are served.
    pub owner: NodeId,
    pub state: ErcState,
    pub flags: Flags,
}

impl page_table::PageEntry for PageEntry {
    fn fresh(_layout: &Layout, _page: Page) -> Self {
        let flags = Flags::default();
        Self { round: 0, record: NO_RECORD, owner: NOBODY, state: ErcState::None, flags }
    }

    fn record(&mut self) -> &mut u32 {
        &mut self.record
    }
}
