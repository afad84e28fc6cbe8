//! The recorded use of one page.

use crate::areas::Map;
use crate::range_set::RangeSet;
use crate::row_sums::{Amount, RowKey, Shape};
use crate::written_bytes::Writes;
use gondwana_monitor::Kind;
use gondwana_page::PAGE_SIZE;
use std::collections::BTreeMap;
use std::ops::Range;

/// log2 of the bytes of the longest unit that locates a touch within a page.
const FINE: u8 = 6;
/// log2 of the bytes of the longest unit that counts as exactly the touched bytes.
const EXACT: u8 = 3;
/// The longest pages whose written bytes are recorded.
const PAGE: u64 = PAGE_SIZE as u64;

/// A fetch of a page that a node had lost to a writer: a coherence miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Miss {
    /// The node that fetched.
    pub(crate) node: u16,
    /// The node that sent the page.
    pub(crate) peer: u16,
    /// The touched addresses; the whole page if they are unknown.
    pub(crate) at: Range<u64>,
    /// The number of such fetches.
    pub(crate) count: u64,
    /// True for a write.
    pub(crate) write: bool,
}

/// The use of a page by one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeUse {
    /// The bytes that it wrote, as far as they are known.
    pub(crate) written: RangeSet,
    /// The bytes that others wrote, as far as they are known.
    pub(crate) others: RangeSet,
    /// True if it wrote, at whatever bytes.
    pub(crate) writes: bool,
    /// The addresses that it touched first when it fetched the page.
    pub(crate) touched: RangeSet,
    /// How often a thread of it waited for the page.
    pub(crate) fetches: u64,
    /// How often it began to write.
    begins: u64,
    /// The addresses at which it began to write.
    begun: Vec<(Range<u64>, u8)>,
    /// Fetches for writes, upgrades and diffs.
    writing: u64,
    /// Notices and invalidations.
    losses: u64,
    /// How often the page was prefetched.
    ahead: u64,
}

impl NodeUse {
    /// How often the page was prefetched, if the node has lost it to writers.
    fn again_ahead(&self) -> u64 {
        if self.losses > 0 { self.ahead } else { 0 }
    }

    /// How often the page came: fetched, or prefetched after a loss.
    pub(crate) fn arrivals(&self) -> u64 {
        self.fetches.saturating_add(self.again_ahead())
    }
}

/// The use of a page by all nodes.
#[derive(Clone, Debug)]
pub(crate) struct PageHistory {
    /// Its addresses.
    pub(crate) range: Range<u64>,
    /// The use by each node.
    pub(crate) uses: BTreeMap<u16, NodeUse>,
    /// The coherence misses.
    pub(crate) misses: Vec<Miss>,
}

impl PageHistory {
    fn written_by_others(&self, node: u16) -> RangeSet {
        let mut all = RangeSet::default();
        for (_, others) in self.uses.iter().filter(|(other, _)| **other != node) {
            all.add_all(&others.written);
        }
        all
    }

    fn note(&mut self, like: &RowKey, count: u64, nodes: usize) {
        let fine = like.unit <= FINE;
        let at = if fine { like.range() } else { self.range.clone() };
        let node = self.uses.entry(like.node).or_default();
        match like.kind {
            Kind::Read | Kind::ColdRead | Kind::ExcessRead => {
                node.fetches += count;
                node.touched.add(at.clone());
            }
            // A predicted write: the thread may not have written.
            Kind::Upgrade if like.thread == 0 => {}
            Kind::Write | Kind::ColdWrite | Kind::ExcessWrite | Kind::Upgrade => {
                node.begins += count;
                if like.kind != Kind::Upgrade {
                    node.fetches += count;
                }
                node.writes = true;
                node.writing += count;
                if fine {
                    node.begun.push((at.clone(), like.unit));
                }
            }
            Kind::Diff => {
                node.writes = true;
                node.writing += count;
            }
            Kind::Notice => {
                node.losses += count;
                if usize::from(like.peer) < nodes {
                    self.uses.entry(like.peer).or_default().writes = true;
                }
            }
            Kind::Invalidation => node.losses += count,
            Kind::Prefetched => node.ahead += count,
            // A home has its pages exclusively before any node writes them.
            Kind::Recall | Kind::LockHandOff => {}
        }
        if matches!(like.kind, Kind::Read | Kind::Write) {
            let write = like.kind == Kind::Write;
            self.misses.push(Miss { node: like.node, peer: like.peer, at, count, write });
        }
    }

    /// Derives the results, once all rows are noted.
    fn conclude(&mut self, map: &Map, writes: &Writes) {
        let exact = self.range.end - self.range.start <= PAGE;
        for (&node, used) in &mut self.uses {
            // A page that was prefetched after it was lost would otherwise have been fetched, where the node usually
            // does so.
            if used.again_ahead() > 0 {
                let own = self.misses.iter_mut().filter(|miss| miss.node == node);
                if let Some(usual) = own.max_by_key(|miss| miss.count) {
                    usual.count += used.again_ahead();
                } else {
                    let at = self.range.clone();
                    self.misses.push(Miss { node, peer: node, at, count: used.again_ahead(), write: false });
                }
            }
            if let Some(span) = writes.by(node, self.range.start).filter(|_| exact) {
                used.writes = true;
                used.written = span.clone();
            }
        }
        self.forget_initialisation();
        let exact: BTreeMap<u16, RangeSet> =
            self.uses.iter().map(|(&node, used)| (node, used.written.clone())).collect();
        for (&node, used) in &mut self.uses {
            if used.written.is_empty() {
                let mut others = RangeSet::default();
                exact.iter().filter(|(other, _)| **other != node).for_each(|(_, span)| others.add_all(span));
                used.written =
                    used.begun.iter().flat_map(|(at, unit)| meant(at, *unit, &others, map)).collect();
            }
        }
        let nodes: Vec<u16> = self.uses.keys().copied().collect();
        for node in nodes {
            let others = self.written_by_others(node);
            self.uses.entry(node).or_default().others = others;
        }
    }

    /// A node that wrote all that the others write, and more, has initialised the page: only its later writes count
    /// as its own. A node that wrote no more than the others, but only once, has passed the page on.
    fn forget_initialisation(&mut self) {
        let nodes: Vec<u16> = self.uses.keys().copied().collect();
        for node in nodes {
            let others = self.written_by_others(node);
            let used = self.uses.get_mut(&node).expect("one of the nodes");
            let all = !others.is_empty() && used.written.covers(&others) && used.written != others;
            if all {
                let begun: RangeSet = used.begun.iter().map(|(at, _)| at.clone()).collect();
                used.written = begun.common(&used.written);
                used.writes = used.writing > 1;
                return;
            }
            let handed_over = !others.is_empty() && used.written == others && used.begins == 1;
            let is_rewritten = self.uses.iter().any(|(other, used)| *other != node && used.begins > 1);
            if handed_over && is_rewritten {
                let used = self.uses.get_mut(&node).expect("one of the nodes");
                (used.written, used.writes) = (RangeSet::default(), false);
                used.begun.clear();
                return;
            }
        }
    }
}

/// The bytes of a write of which only the unit is known.
///
/// If others write in the same unit, these are the bytes of their variables or blocks that the others do not write:
/// for example a word of an array of which each node writes its own words. If there are none, all wrote the same
/// bytes.
fn meant(at: &Range<u64>, unit: u8, others: &RangeSet, map: &Map) -> Vec<Range<u64>> {
    if unit <= EXACT || !others.meets(at) {
        return vec![at.clone()];
    }
    let pieces: RangeSet =
        map.pieces(at).map(|(_, piece)| piece).filter(|piece| others.meets(piece)).collect();
    let left = pieces.without(others);
    if left.is_empty() { others.within(at).ranges().to_vec() } else { left.ranges().to_vec() }
}

/// First address and length of a page.
pub(crate) type Key = (u64, u64);

/// The use of each page, in ascending order. Rows about more than a page make pages of their size.
pub(crate) fn pages(
    rows: &[(RowKey, Amount)],
    run: &Shape,
    map: &Map,
    writes: &Writes,
) -> BTreeMap<Key, PageHistory> {
    let mut pages: BTreeMap<Key, PageHistory> = BTreeMap::new();
    for (like, amount) in rows.iter().filter(|(_, amount)| amount.count > 0) {
        let key = key(like, run.page_bytes);
        let page = pages.entry(key).or_insert_with(|| PageHistory {
            range: key.0..key.0.saturating_add(key.1),
            uses: BTreeMap::new(),
            misses: vec![],
        });
        page.note(like, amount.count, run.nodes);
    }
    pages.values_mut().for_each(|page| page.conclude(map, writes));
    pages
}

/// The page that a row is about: its first address and its length.
pub(crate) fn key(like: &RowKey, page_bytes: u64) -> Key {
    let bytes = page_bytes.max(1 << like.unit);
    (like.address & !(bytes - 1), bytes)
}
