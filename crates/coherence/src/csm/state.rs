//! What a node knows of one page.

use super::History;
use crate::page_table::{self, Flags};
use crate::slab::NO_RECORD;
use crate::{Layout, Page};
use gondwana_topology::{NodeId, NodeSet};

/// The role that this node plays for a page, and what its threads may do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Home; nobody touched the page yet, so it is zero everywhere.
    Untouched,
    /// Home; no other node has a copy. Threads write freely: no notice is due to anybody.
    HomeExclusive,
    /// Home; others may have copies. Threads only read.
    HomeShared,
    /// Home; threads write, and the sharers are told at the next release.
    HomeDirty,
    /// No usable copy, no twin.
    Invalid,
    /// A copy that threads only read.
    Shared,
    /// A copy that threads write; a twin tells later what they wrote.
    Dirty,
    /// As `Dirty`, but overtaken by a write notice: threads must not touch it before it is fetched and merged.
    StaleDirty,
    /// A fetch is on its way.
    Fetching,
    /// A fetch is due, but must wait until the page's last diff is acknowledged.
    Deferred,
    /// Threads use the page in memory that all nodes have in common.
    Common,
    /// As `Common`; home.
    HomeCommon,
    /// Home of a page that is about to leave this machine (`part.rs`). No thread uses it here.
    HomeLeaving,
    /// The page has left this machine: another one sees to it.
    Gone,
}

impl State {
    /// True if the page's home is this node.
    #[must_use]
    pub fn is_home(self) -> bool {
        matches!(
            self,
            Self::Untouched
                | Self::HomeExclusive
                | Self::HomeShared
                | Self::HomeDirty
                | Self::HomeCommon
                | Self::HomeLeaving
        )
    }
}

/// A twin exists.
pub(super) const TWIN: u8 = 1;
/// A write notice arrived that no acquire has acted on yet.
pub(super) const PENDING: u8 = 2;
/// The answer to the fetch under way can lack writes of this node: fetch again.
pub(super) const REFETCH: u8 = 4;
/// The fetch was begun by a write.
pub(super) const WRITE: u8 = 8;
/// At the home: `probable_home` is the node that the home was asked to be at, and moves to if it is elsewhere.
pub(super) const PINNED: u8 = 16;
/// Became home while a fetch is under way, whose answer is yet to come.
pub(super) const GRANT_RACE: u8 = 32;

/// At the home, `HomeDirty`: perhaps nobody has written the page, and all sharers have copied it since it was exclusive.
pub(super) const ONLY_CLAIMED: u8 = 64;

/// This node has written the page between its last two releases, and others have a copy. If it writes the page again, the page
/// stays writable over the next release (`kept.rs`).
pub(super) const REWRITTEN: u8 = 128;

/// 16 bytes a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageEntry {
    /// The last flush with a diff of this page; the diff is acknowledged once that flush is complete.
    pub flush: u64,
    /// Where the directory entry is, at the home of a page that others use too.
    pub directory: u32,
    /// The node that was home when this node last knew. At the home: where it is to be, if that was decided.
    pub probable_home: NodeId,
    pub state: State,
    pub flags: Flags,
}

impl PageEntry {
    /// True if a page that nobody touched is to have the same home as this one.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.state == other.state
            && self.probable_home == other.probable_home
            && self.has(PINNED) == other.has(PINNED)
    }

    /// True of a page that this node cannot use and may ask for: all its diffs are among the flushes that are `completed`.
    pub(super) fn is_due(&self, completed: u64) -> bool {
        self.state == State::Invalid && self.flush <= completed
    }

    /// True if the home may move from here to a node that writes the page and has this past.
    pub(super) fn may_move_to(&self, node: NodeId, history: &History) -> bool {
        let wanted = if self.has(PINNED) { self.probable_home == node } else { history.may_move_to(node) };
        wanted && !self.has(GRANT_RACE)
    }

    /// True of a page that threads of this node may go on writing while its writes are released.
    pub(super) fn is_kept(&self) -> bool {
        let written = matches!(self.state, State::Dirty | State::HomeDirty);
        written && self.flags.0 & (TWIN | REWRITTEN) == TWIN | REWRITTEN
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
        let probable_home = layout.manager(page);
        let state = if probable_home == layout.me() { State::Untouched } else { State::Invalid };
        Self { flush: 0, directory: NO_RECORD, probable_home, state, flags: Flags::default() }
    }

    fn record(&mut self) -> &mut u32 {
        &mut self.directory
    }
}

/// What the home of a page knows about its copies; exists for pages that more than one node used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DirectoryEntry {
    /// Every node that has a copy and was not yet sent a notice about it. A node may be in the set without a
    /// copy, never the other way round.
    pub sharers: NodeSet,
    pub history: History,
    /// Nodes that were sent a notice as part of flush `flush` of node `origin`, and have not fetched since. Until
    /// that flush is known to be complete, some of them may not have received it yet.
    pub notified: NodeSet,
    pub origin: NodeId,
    pub flush: u64,
    /// Sharers that have copied the page one-sided. They may still be doing so: a node can be interrupted between claim and copy.
    pub claimed: NodeSet,
    /// Of a page that the home has a twin of: a copy was taken one-sided since the home's last release, perhaps of bytes that have
    /// got back their values since.
    pub copied: bool,
    /// Nodes that get updates: they have fetched the page again after a notice, or go on writing it beside the home. Where there
    /// are any, nobody reads the page one-sided.
    pub rereads: NodeSet,
    /// Nodes of which a diff has come since the last release of a home that goes on writing the page.
    pub wrote: NodeSet,
    /// How many updates there were in a row.
    pub updates: u8,
    /// How often others have been told that the page has changed, if it may become common.
    pub told: u8,
}

impl DirectoryEntry {
    /// The nodes that may have a notice on its way to them, given the last complete flush of each node.
    pub(super) fn unconfirmed(&self, completed: &[u64]) -> NodeSet {
        if completed[self.origin.index()] < self.flush { self.notified } else { NodeSet::EMPTY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_costs_sixteen_bytes() {
        assert_eq!(std::mem::size_of::<PageEntry>(), 16);
    }
}
