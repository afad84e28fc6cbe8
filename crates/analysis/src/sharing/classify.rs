//! Classification of the pattern of sharing.

use super::page::{Miss, PageHistory};
use crate::Pattern;
use crate::range_set::{RangeSet, common};
use std::collections::BTreeSet;
use std::ops::Range;

/// A reader that first touches a page at unwritten bytes is taken to read the written ones, too, if they are more
/// than one part in this many of the page.
const BULK: u64 = 16;
/// Readers make data widely written if one miss in this many is theirs.
const READERS: u64 = 8;

/// How the part of a page that belongs to one area is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartSharing {
    /// The pattern.
    pub(crate) pattern: Pattern,
    /// Coherence misses at bytes that others write.
    pub(crate) true_misses: u64,
    /// Coherence misses at bytes that no other node writes.
    pub(crate) false_misses: u64,
}

/// Classifies the bytes of a page that are in `part`.
///
/// A miss is *false* if the touched bytes are not among those that others write: it would not have occurred without
/// the other contents of the page. Data is falsely shared if most of its misses are false. Otherwise:
///
/// | written by | and |  |
/// |---|---|---|
/// | no node
/// | read-only |
/// | one node | no other uses it | private |
/// | one node | others fetched it once | read-only |
/// | one node, or each byte by one | others fetch it again and again | producer/consumer |
/// | each byte by one node
/// no node fetches it, but the page again and again
/// falsely shared |
/// | several the same bytes | all who fetch it write it | migratory |
/// | several the same bytes | others read it | widely written |
pub(crate) fn classify(page: &PageHistory, part: &RangeSet) -> PartSharing {
    let (mut true_misses, mut false_misses) = (0_u64, 0_u64);
    let mut writers: BTreeSet<u16> = BTreeSet::new();
    let mut users: BTreeSet<u16> = BTreeSet::new();
    for (&node, used) in &page.uses {
        if used.written.overlaps(part) || used.writes && used.written.is_empty() {
            writers.insert(node);
        }
        if used.touched.overlaps(part) {
            users.insert(node);
        }
    }
    let mut readers: u64 = 0;
    for miss in page.misses.iter().filter(|miss| part.meets(&miss.at)) {
        if is_true(page, part, miss) {
            true_misses = true_misses.saturating_add(miss.count);
            if writers.iter().all(|&writer| writer == miss.node) && miss.peer != miss.node {
                // The home has written, or the node that had the page.
                writers.insert(miss.peer);
            }
        } else {
            false_misses = false_misses.saturating_add(miss.count);
        }
        users.insert(miss.node);
        if !writers.contains(&miss.node) {
            readers = readers.saturating_add(miss.count);
        }
    }
    users.extend(&writers);
    let moved = true_misses.saturating_add(false_misses);
    let pattern = if false_misses > true_misses {
        Pattern::FalselyShared
    } else if writers.is_empty() {
        Pattern::ReadOnly
    } else if users.len() == 1 {
        Pattern::Private
    } else if moved == 0 {
        match (writers.len(), contended(page, part)) {
            (1, _) => Pattern::ReadOnly,
            // The first addresses that others touch show why they fetch the page.
            (_, false) if page.misses.is_empty() => Pattern::Private,
            (_, false) => Pattern::FalselyShared,
            (_, true) => Pattern::Migratory,
        }
    } else if writers.len() == 1 || !contended(page, part) {
        Pattern::ProducerConsumer
    } else if readers > moved / READERS {
        Pattern::WidelyWritten
    } else {
        Pattern::Migratory
    };
    PartSharing { pattern, true_misses, false_misses }
}

/// True if more than one node writes the same bytes, or if the written bytes are unknown.
fn contended(page: &PageHistory, part: &RangeSet) -> bool {
    let mut all = RangeSet::default();
    let mut unknown = 0;
    for used in page.uses.values().filter(|used| used.writes) {
        let written = used.written.common(part);
        if all.overlaps(&written) {
            return true;
        }
        unknown += u32::from(used.written.is_empty());
        all.add_all(&written);
    }
    unknown > 1 || unknown == 1 && !all.is_empty()
}

/// True if a miss was at bytes that others write.
fn is_true(page: &PageHistory, part: &RangeSet, miss: &Miss) -> bool {
    let Some(used) = page.uses.get(&miss.node).filter(|used| !used.others.is_empty()) else {
        // Another node has written, at unknown bytes.
        return true;
    };
    let (own, others) = (used.written.common(part), &used.others);
    match touched(&own, &miss.at) {
        Some(bytes) => others.overlaps(&bytes),
        None if others.length() > (page.range.end - page.range.start) / BULK && !miss.write => true,
        None => others.overlaps(&part.within(&miss.at)),
    }
}

/// The bytes that a node is taken to touch in a unit in which it writes: those that it writes. `None` if it writes
/// nothing there.
fn touched(own: &RangeSet, at: &Range<u64>) -> Option<RangeSet> {
    let bytes: RangeSet = own.ranges().iter().map(|range| common(range, at)).collect();
    (!bytes.is_empty()).then_some(bytes)
}
