//! The use of the bytes of a falsely shared page by each node.

use super::page::PageHistory;
use crate::range_set::RangeSet;
use std::ops::Range;

/// The most ranges that are shown for one node and page.
const RANGES: usize = 32;
/// A place with one miss for this many misses of another place is left out.
const RARE: u64 = 16;
/// The bytes that a thread mostly reads at once.
const WORD: u64 = 4;

/// Bytes that one node uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeBytes {
    /// The node.
    pub(crate) node: u16,
    /// True if the node writes the bytes, false if it reads them.
    pub(crate) writes: bool,
    /// The bytes.
    pub(crate) bytes: Range<u64>,
}

/// The words that bytes are in.
fn words(bytes: &Range<u64>) -> Range<u64> {
    bytes.start & !(WORD - 1)..bytes.end.saturating_add(WORD - 1) & !(WORD - 1)
}

/// The bytes of a page that nodes write, and other bytes that they touch repeatedly, in ascending order.
pub(crate) fn node_bytes(page: &PageHistory) -> Vec<NodeBytes> {
    let mut node_bytes = vec![];
    let most = page.misses.iter().map(|miss| miss.count).max().unwrap_or(0);
    for (&node, used) in &page.uses {
        // A diff has only those bytes of a written word that have changed.
        let words: RangeSet = used.written.ranges().iter().map(words).collect();
        let often = page.misses.iter().filter(|miss| {
            let is_somewhere = !miss.write && miss.at != page.range;
            miss.node == node && is_somewhere && miss.count.saturating_mul(RARE) >= most
        });
        let read = often.map(|miss| miss.at.clone()).collect::<RangeSet>().without(&words);
        for (span, writes) in [(&used.written, true), (&read, false)] {
            let ranges = span.ranges().iter().take(RANGES);
            node_bytes.extend(ranges.map(|bytes| NodeBytes { node, writes, bytes: bytes.clone() }));
        }
    }
    node_bytes.sort_by_key(|side| (side.bytes.start, side.bytes.end, side.node));
    node_bytes
}
