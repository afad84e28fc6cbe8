//! Who uses which bytes of a page that is falsely shared.

use super::page::Page;
use crate::span::Span;
use std::ops::Range;

/// Ranges of one node that are shown of a page at most.
const RANGES: usize = 32;

/// Bytes that a node uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    /// The node.
    pub(crate) node: u16,
    /// It writes them; else it reads them.
    pub(crate) writes: bool,
    /// The bytes.
    pub(crate) bytes: Range<u64>,
}

/// What nodes write of a page, and where else they touch it, in ascending order.
pub(crate) fn sides(page: &Page) -> Vec<Side> {
    let mut sides = vec![];
    for (&node, used) in &page.uses {
        let whole: Span = [page.range.clone()].into_iter().collect();
        let read = if used.touched == whole { Span::default() } else { used.touched.without(&used.written) };
        for (span, writes) in [(&used.written, true), (&read, false)] {
            let ranges = span.ranges().iter().take(RANGES);
            sides.extend(ranges.map(|bytes| Side { node, writes, bytes: bytes.clone() }));
        }
    }
    sides.sort_by_key(|side| (side.bytes.start, side.bytes.end, side.node));
    sides
}
