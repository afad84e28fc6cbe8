//! The use of each page by each thread and other node.

use crate::row_sums::{Amount, RowKey, Shape};
use gondwana_monitor::Kind;
use gondwana_recording::{HomeRecord, Recording};
use std::collections::BTreeMap;

/// What a node has used of a page without a transaction, while it was the home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HomeUse {
    /// Fetches for reads that would have been transactions at another node.
    pub reads: u64,
    /// The same for writes.
    pub writes: u64,
    /// Diffs that it would have sent home.
    pub diffs: u64,
    /// Bytes of all these.
    pub bytes: u64,
}

/// The use of one page by one thread, as far as one other node was involved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageUse {
    /// First address of the page, or of several pages that the recording does not separate.
    pub address: u64,
    /// log2 of the bytes: a page or more.
    pub unit: u8,
    /// The area, as an index into [`Analysis::areas`](crate::Analysis::areas).
    pub area: u32,
    /// The node.
    pub node: u16,
    /// The thread, plus 1; 0 if none.
    pub thread: u32,
    /// The home, which sent the page or received the diff; for notices, the node that wrote.
    pub peer: u16,
    /// Fetches for reads.
    pub reads: u32,
    /// Fetches for writes.
    pub writes: u32,
    /// First writes of a page that this node had for reading.
    pub upgrades: u32,
    /// How often the page was prefetched.
    pub ahead: u32,
    /// Diffs sent.
    pub diffs: u32,
    /// Write notices received.
    pub notices: u32,
    /// Bytes that moved.
    pub bytes: u64,
}

/// The uses of pages, from rows; `areas` has the area of each row.
pub(crate) fn page_uses(rows: &[(RowKey, Amount)], areas: &[u32], page_bytes: u64) -> Vec<PageUse> {
    let page = u8::try_from(page_bytes.trailing_zeros()).expect("a word has few bits");
    let mut uses: Vec<PageUse> = rows
        .iter()
        .zip(areas)
        .filter_map(|((like, amount), &area)| of_row(like, *amount, area, page))
        .collect();
    uses.sort_unstable_by_key(key);
    uses.dedup_by(|next, known| {
        let same = key(next) == key(known);
        if same {
            add(known, next);
        }
        same
    });
    uses
}

/// What homes have used of their pages, by page and home; the last record of both counts.
pub(crate) fn home_uses(recording: &Recording, shape: &Shape) -> BTreeMap<(u64, u16), HomeUse> {
    let known = recording.homes.iter().filter(|(node, _)| usize::from(*node) < shape.nodes);
    let of = |&(node, HomeRecord { address, reads, writes, diffs, bytes }): &(u16, HomeRecord)| {
        ((address / shape.page_bytes, node), HomeUse { reads, writes, diffs, bytes })
    };
    known.map(of).collect()
}

fn of_row(like: &RowKey, amount: Amount, area: u32, page: u8) -> Option<PageUse> {
    let count = u32::try_from(amount.count).unwrap_or(u32::MAX);
    let unit = like.unit.max(page);
    let address = like.address >> unit << unit;
    let (node, thread, peer, bytes) = (like.node, like.thread, like.peer, amount.bytes);
    let mut uses = PageUse { address, unit, area, node, thread, peer, bytes, ..PageUse::default() };
    let counter = match like.kind {
        Kind::Read | Kind::ColdRead | Kind::ExcessRead => &mut uses.reads,
        Kind::Write | Kind::ColdWrite | Kind::ExcessWrite => &mut uses.writes,
        Kind::Upgrade => &mut uses.upgrades,
        Kind::Prefetched => &mut uses.ahead,
        Kind::Diff => &mut uses.diffs,
        Kind::Notice => &mut uses.notices,
        Kind::Invalidation | Kind::Recall | Kind::LockHandOff => return None,
    };
    *counter = count;
    Some(uses)
}

fn key(uses: &PageUse) -> (u64, u8, u32, u16, u32, u16) {
    (uses.address, uses.unit, uses.area, uses.node, uses.thread, uses.peer)
}

fn add(to: &mut PageUse, more: &PageUse) {
    let counters = [
        (&mut to.reads, more.reads),
        (&mut to.writes, more.writes),
        (&mut to.upgrades, more.upgrades),
        (&mut to.ahead, more.ahead),
        (&mut to.diffs, more.diffs),
        (&mut to.notices, more.notices),
    ];
    for (counter, more) in counters {
        *counter = counter.saturating_add(more);
    }
    to.bytes = to.bytes.saturating_add(more.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_about_one_page_and_peer_are_taken_together() {
        let row = |address, unit, kind, peer| {
            let like = RowKey { address, unit, node: 1, kind, peer, thread: 3, code: address };
            (like, Amount { count: 2, bytes: 10 })
        };
        let rows = [
            row(0x5004, 2, Kind::ColdRead, 0),
            row(0x5ff8, 2, Kind::Read, 0),
            row(0x5000, 12, Kind::Diff, 0),
            row(0x5000, 12, Kind::Notice, 2),
            row(0x5000, 12, Kind::Invalidation, 2),
            row(0x8000, 14, Kind::Prefetched, 0),
        ];
        let uses = page_uses(&rows, &[7; 6], 0x1000);
        let one = PageUse { address: 0x5000, unit: 12, area: 7, node: 1, thread: 3, ..PageUse::default() };
        assert_eq!(
            uses,
            [
                PageUse { peer: 0, reads: 4, diffs: 2, bytes: 30, ..one },
                PageUse { peer: 2, notices: 2, bytes: 10, ..one },
                PageUse { address: 0x8000, unit: 14, peer: 0, ahead: 2, bytes: 10, ..one },
            ]
        );
    }
}
