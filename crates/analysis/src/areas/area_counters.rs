//! The counters of each area.

use super::map::Map;
use crate::apportion::apportion;
use crate::range_set::{RangeSet, common};
use crate::row_sums::{Amount, RowKey, Shape};
use crate::sharing::{self, Key, PageHistory, PartSharing};
use crate::written_bytes::Writes;
use crate::{AreaNode, Pattern, Totals};
use gondwana_monitor::Kind;
use gondwana_page::PAGE_BITS;
use std::collections::{BTreeMap, HashMap};

/// log2 of the bytes of the longest unit that locates a touch within an area.
const FINE: u8 = 6;
/// log2 of the bytes of the longest unit whose written bytes may be known.
const LONGEST_WRITTEN: u8 = PAGE_BITS;
/// An area gets a pattern of shared pages if one transaction in this many is about such pages.
const SHARED: u64 = 8;

/// The counters of one area.
#[derive(Clone, Debug, Default)]
pub(crate) struct AreaCounters {
    /// The totals of all nodes.
    pub(crate) totals: Totals,
    /// The totals of each node.
    pub(crate) nodes: BTreeMap<u16, AreaNode>,
    /// Fetches for reads, and fetches and upgrades for writes, by instruction.
    pub(crate) codes: HashMap<u64, (u64, u64)>,
    /// The same, by touched address.
    pub(crate) touched: HashMap<u64, (u64, u64)>,
    /// The falsely shared pages, and the number of false misses of each.
    pub(crate) falsely_shared: Vec<(Key, u64)>,
    /// Transactions by the pattern of their pages.
    votes: HashMap<Pattern, u64>,
}

impl AreaCounters {
    /// The pattern of the area. Sharing costs more than fetching once, so a small part of the transactions decides
    /// for it.
    pub(crate) fn pattern(&self) -> Pattern {
        use Pattern::{FalselyShared, Migratory, Private, ProducerConsumer, ReadOnly, WidelyWritten};
        let votes = |pattern: Pattern| self.votes.get(&pattern).copied().unwrap_or(0);
        let most =
            |of: &[Pattern]| of.iter().copied().max_by_key(|&pattern| votes(pattern)).unwrap_or_default();
        let all: u64 = self.votes.values().fold(0, |sum, &more| sum.saturating_add(more));
        let shared = [ProducerConsumer, Migratory, WidelyWritten, FalselyShared];
        let of_shared = shared.iter().fold(0_u64, |sum, &pattern| sum.saturating_add(votes(pattern)));
        if of_shared > 0 && of_shared >= all / SHARED { most(&shared) } else { most(&[ReadOnly, Private]) }
    }

    fn count(&mut self, like: &RowKey, amount: Amount, nodes: usize) {
        self.totals.count(like.kind, amount);
        let node = self.nodes.entry(like.node).or_default();
        node.totals.count(like.kind, amount);
        if let Some(thread) = like.thread.checked_sub(1)
            && let Err(at) = node.threads.binary_search(&thread)
        {
            node.threads.insert(at, thread);
        }
        if (like.kind.is_fetch() || like.kind == Kind::Prefetched) && usize::from(like.peer) < nodes {
            node.from.resize(nodes, 0);
            let from = &mut node.from[usize::from(like.peer)];
            *from = from.saturating_add(amount.count);
        }
    }

    fn touch(&mut self, like: &RowKey, at: Option<u64>, count: u64) {
        let (reads, writes) = reads_and_writes(like.kind, count);
        if reads == 0 && writes == 0 {
            return;
        }
        let add = |sum: &mut (u64, u64)| *sum = (sum.0.saturating_add(reads), sum.1.saturating_add(writes));
        if like.code > 0 {
            add(self.codes.entry(like.code).or_default());
        }
        if let Some(at) = at {
            add(self.touched.entry(at).or_default());
        }
    }
}

/// The fetches for reads, and the fetches and upgrades for writes, among transactions of a kind.
pub(crate) fn reads_and_writes(kind: Kind, count: u64) -> (u64, u64) {
    match kind {
        Kind::Read | Kind::ColdRead | Kind::ExcessRead => (count, 0),
        Kind::Write | Kind::ColdWrite | Kind::ExcessWrite | Kind::Upgrade => (0, count),
        _ => (0, 0),
    }
}

/// Counts all rows for the owners of their addresses. Returns the counters of each owner, and the main owner of each
/// row.
pub(crate) fn area_counters(
    rows: &[(RowKey, Amount)],
    shape: &Shape,
    map: &Map,
    writes: &Writes,
    pages: &BTreeMap<Key, PageHistory>,
) -> (BTreeMap<usize, AreaCounters>, Vec<usize>) {
    let mut area_counters: BTreeMap<usize, AreaCounters> = BTreeMap::new();
    let mut owners = Vec::with_capacity(rows.len());
    let parts = parts(pages, map);
    for (like, amount) in rows {
        let range = like.range();
        let written = written(like, writes);
        let shares = map.shares(&range, written);
        let weights: Vec<u64> = shares.iter().map(|&(_, weight)| weight).collect();
        let (counts, bytes) = (apportion(amount.count, &weights), apportion(amount.bytes, &weights));
        let mut most = (0, shares[0].0);
        for ((&(owner, weight), count), bytes) in shares.iter().zip(counts).zip(bytes) {
            if weight > most.0 {
                most = (weight, owner);
            }
            if count == 0 && bytes == 0 {
                continue;
            }
            let counters = area_counters.entry(owner).or_default();
            counters.count(like, Amount { count, bytes }, shape.nodes);
            let at = (like.unit <= FINE).then(|| touched_at(like, owner, map, written));
            counters.touch(like, at, count);
            if like.kind != Kind::Prefetched
                && let Some(part) = parts.get(&(sharing::key(like, shape.page_bytes), owner))
            {
                let votes = counters.votes.entry(part.pattern).or_default();
                *votes = votes.saturating_add(count);
            }
        }
        owners.push(most.1);
    }
    for (&(key, owner), part) in &parts {
        // A few false misses on a truly shared page are left out.
        if part.false_misses > 0
            && part.false_misses >= part.true_misses / SHARED
            && key.1 == shape.page_bytes
            && let Some(counters) = area_counters.get_mut(&owner)
        {
            counters.falsely_shared.push((key, part.false_misses));
        }
    }
    for counters in area_counters.values_mut() {
        counters.falsely_shared.sort_by_key(|&(key, misses)| (std::cmp::Reverse(misses), key));
    }
    count_written(&mut area_counters, map, writes);
    (area_counters, owners)
}

/// The sharing of the part of each page that belongs to each owner.
fn parts(pages: &BTreeMap<Key, PageHistory>, map: &Map) -> HashMap<(Key, usize), PartSharing> {
    let mut parts = HashMap::new();
    for (&key, page) in pages {
        let mut owners: BTreeMap<usize, Vec<std::ops::Range<u64>>> = BTreeMap::new();
        map.pieces(&page.range).for_each(|(owner, piece)| owners.entry(owner).or_default().push(piece));
        if owners.is_empty() {
            owners.insert(map.owners.len() - 1, vec![page.range.clone()]);
        }
        for (owner, pieces) in owners {
            parts.insert((key, owner), sharing::classify(page, &pieces.into_iter().collect()));
        }
    }
    parts
}

/// The bytes of a transaction about written bytes, if they are known. A node that reads in a small unit in which it
/// writes is taken to read what it writes.
fn written<'a>(like: &RowKey, writes: &'a Writes) -> Option<&'a RangeSet> {
    let (writer, longest) = match like.kind {
        Kind::Notice | Kind::Invalidation => (like.peer, LONGEST_WRITTEN),
        Kind::Read | Kind::ColdRead | Kind::ExcessRead => (like.node, FINE),
        Kind::Prefetched | Kind::LockHandOff => return None,
        _ => (like.node, LONGEST_WRITTEN),
    };
    writes.by(writer, like.address).filter(|_| like.unit <= longest)
}

/// The address at which a thread began, in an owner's bytes of a small unit: at bytes that its node writes, if they
/// are known.
fn touched_at(like: &RowKey, owner: usize, map: &Map, written: Option<&RangeSet>) -> u64 {
    let range = like.range();
    let pieces = || map.pieces(&range).filter(|(known, _)| *known == owner).map(|(_, piece)| piece);
    let exact = written
        .and_then(|written| pieces().find_map(|piece| Some(written.within(&piece).ranges().first()?.start)));
    exact.or_else(|| pieces().next().map(|piece| common(&piece, &range).start)).unwrap_or(like.address)
}

/// Counts the bytes of each area that nodes have written.
fn count_written(area_counters: &mut BTreeMap<usize, AreaCounters>, map: &Map, writes: &Writes) {
    for (node, span) in writes.iter() {
        for range in span.ranges() {
            for (owner, piece) in map.pieces(range) {
                if let Some(counters) = area_counters.get_mut(&owner) {
                    let node = counters.nodes.entry(node).or_default();
                    node.written = node.written.saturating_add(piece.end - piece.start);
                }
            }
        }
    }
}
