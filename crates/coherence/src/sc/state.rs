//! What a node knows of one page.

use crate::page_table::{self, Flags};
use crate::slab::NO_RECORD;
use crate::slices::Turn;
use crate::{Layout, Page};
use gondwana_topology::{NodeId, NodeSet};
use std::collections::VecDeque;

/// What this node has of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScState {
    /// Nothing.
    None,
    /// A copy to read.
    Read,
    /// The page, to read; others may have copies.
    Owner,
    /// The page; nobody else has a copy.
    Write,
    /// The page, in memory that all nodes have in common.
    Common,
}

/// A request for the page is under way.
pub(super) const ASKED: u8 = 1;
/// The page came for writing; acknowledgements of invalidations are still missing.
pub(super) const ARRIVED: u8 = 2;
/// At the manager: a request is being served.
pub(super) const BUSY: u8 = 4;
/// `manager` is to be the manager, but does not know it yet: this node still is.
pub(super) const GIVE: u8 = 8;
/// At the manager: a policy decided that it is.
pub(super) const PINNED: u8 = 16;
/// What was asked for has waited for a node that kept it, or for another request.
pub(super) const KEPT: u8 = 32;
/// At the manager: the page becomes common as soon as no other node has anything of it.
pub(super) const CONTESTED: u8 = 64;

/// The owner of a page that nobody touched.
pub(super) const NOBODY: NodeId = NodeId(u16::MAX);

/// 16 bytes a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageEntry {
    /// Acknowledgements that the writer on this node waits for; negative while they are ahead of the page.
    pub acks: i32,
    /// At the manager: where the record of copies and waiting requests is.
    pub record: u32,
    /// At the manager: the owner.
    pub owner: NodeId,
    /// The manager when this node last knew.
    pub manager: NodeId,
    pub state: ScState,
    pub flags: Flags,
    /// At the manager, of a page that may become common: how often it was taken from other nodes, to be written.
    pub taken: u8,
}

impl PageEntry {
    /// True if the node `me`, whose entry this is, manages the page.
    pub(super) fn is_manager(&self, me: NodeId) -> bool {
        self.manager == me || self.has(GIVE)
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags.has(flag)
    }

    pub(super) fn set(&mut self, flag: u8) {
        self.flags.set(flag);
    }

    pub(super) fn take(&mut self, flag: u8) -> bool {
        self.flags.take(flag)
    }
}

impl page_table::PageEntry for PageEntry {
    fn fresh(layout: &Layout, page: Page) -> Self {
        let manager = layout.manager(page);
        Self {
            acks: 0,
            record: NO_RECORD,
            owner: NOBODY,
            manager,
            state: ScState::None,
            flags: Flags::default(),
            taken: 0,
        }
    }

    fn record(&mut self) -> &mut u32 {
        &mut self.record
    }
}

/// A request at the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub requester: NodeId,
    /// The number of its slice.
    pub slice: u32,
    pub write: bool,
    /// How many pages were asked for.
    pub asked: u32,
    /// It has waited here.
    pub kept: bool,
}

impl Request {
    pub(super) fn turn(&self) -> Turn {
        Turn { slice: self.slice, node: self.requester }
    }
}

/// What the manager of a page keeps beside its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Managed {
    /// The nodes with a copy, without the owner.
    pub copies: NodeSet,
    /// Requests in the order in which they came. The first one is being served if the page is busy.
    pub queue: VecDeque<Request>,
}
