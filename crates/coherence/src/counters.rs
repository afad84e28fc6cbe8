//! What a protocol machine did, as plain numbers.

use serde::{Deserialize, Serialize};
use std::ops::Add;

/// Events on one node since the machine was made. All are counts; `*_bytes` are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Faults on reads.
    pub read_faults: u64,
    /// Faults on writes.
    pub write_faults: u64,
    /// Pages whose contents arrived and were used.
    pub page_transfers: u64,
    /// Pages of these that this node has read from their homes' memory without a message.
    pub one_sided_reads: u64,
    /// Fetch messages sent by this node for itself.
    pub fetches: u64,
    /// Pages that a thread had to wait for because their contents were not here.
    pub awaited: u64,
    /// Fetch messages passed on because the home had moved.
    pub fetches_forwarded: u64,
    /// Pages fetched again because what arrived lacked writes of this node.
    pub refetches: u64,
    /// Fetches held back until a diff of the same page was acknowledged.
    pub fetches_deferred: u64,
    /// Pages that this node was the first to touch.
    pub first_touches: u64,
    /// Twins made.
    pub twins: u64,
    /// Pages that threads went on writing over a release, counted at each.
    pub kept: u64,
    /// Diffs sent that were not empty.
    pub diffs: u64,
    /// Size of these diffs as sent.
    pub diff_bytes: u64,
    /// Diffs passed on because the home had moved.
    pub diffs_forwarded: u64,
    /// Diffs written into pages whose home is here.
    pub patches: u64,
    /// Incoming pages merged with local writes (two-way diffing).
    pub merges: u64,
    /// Write notices sent, counted by page and receiver.
    pub notices_sent: u64,
    /// Write notices received, counted by page.
    pub notices_received: u64,
    /// Updates sent instead of notices, counted by page and receiver.
    pub updates_sent: u64,
    /// Updates received, counted by page.
    pub updates_received: u64,
    /// Copies given up because of a write notice or an invalidation.
    pub invalidations: u64,
    /// Pages that came to be used by this node alone.
    pub exclusive_entered: u64,
    /// Pages that ceased to be used by this node alone.
    pub exclusive_left: u64,
    /// Homes (or owners) that moved to this node.
    pub home_moves: u64,
    /// Pages that this node has come to use in common memory.
    pub became_common: u64,
    /// Pages that have become synchronisation pages here.
    pub promoted: u64,
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read_faults: self.read_faults + other.read_faults,
            write_faults: self.write_faults + other.write_faults,
            page_transfers: self.page_transfers + other.page_transfers,
            one_sided_reads: self.one_sided_reads + other.one_sided_reads,
            fetches: self.fetches + other.fetches,
            awaited: self.awaited + other.awaited,
            fetches_forwarded: self.fetches_forwarded + other.fetches_forwarded,
            refetches: self.refetches + other.refetches,
            fetches_deferred: self.fetches_deferred + other.fetches_deferred,
            first_touches: self.first_touches + other.first_touches,
            twins: self.twins + other.twins,
            kept: self.kept + other.kept,
            diffs: self.diffs + other.diffs,
            diff_bytes: self.diff_bytes + other.diff_bytes,
            diffs_forwarded: self.diffs_forwarded + other.diffs_forwarded,
            patches: self.patches + other.patches,
            merges: self.merges + other.merges,
            notices_sent: self.notices_sent + other.notices_sent,
            notices_received: self.notices_received + other.notices_received,
            updates_sent: self.updates_sent + other.updates_sent,
            updates_received: self.updates_received + other.updates_received,
            invalidations: self.invalidations + other.invalidations,
            exclusive_entered: self.exclusive_entered + other.exclusive_entered,
            exclusive_left: self.exclusive_left + other.exclusive_left,
            home_moves: self.home_moves + other.home_moves,
            became_common: self.became_common + other.became_common,
            promoted: self.promoted + other.promoted,
        }
    }
}
