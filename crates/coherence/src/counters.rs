//! What a protocol machine did, as plain numbers.

use serde::{Deserialize, Serialize};

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
}
