//! Who uses which pages of an area, in requests.

use crate::{Analysis, Cell, Totals};
use std::collections::{BTreeMap, HashMap};

/// What one node does with one page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Use {
    /// Fetches, diffs and notices.
    pub requests: f64,
    /// Bytes that moved.
    pub bytes: f64,
    /// Of the requests, fetches.
    pub fetches: f64,
    /// Of the requests, those that reads have caused.
    pub reads: f64,
    /// First writes between two releases.
    pub writes: f64,
    /// Write notices received.
    pub notices: f64,
}

impl Use {
    /// What threads do that are on one node: what one has fetched, others have as well.
    fn joined(self, other: Self) -> Self {
        Self {
            requests: self.requests.max(other.requests),
            bytes: self.bytes.max(other.bytes),
            fetches: self.fetches.max(other.fetches),
            reads: self.reads.max(other.reads),
            writes: self.writes.max(other.writes),
            notices: self.notices.max(other.notices),
        }
    }

    /// What a thread does in several places of a page.
    fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            fetches: self.fetches + other.fetches,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            notices: self.notices + other.notices,
        }
    }
}

/// The nodes that use a page, with what they do.
pub type Uses = BTreeMap<u16, Use>;

/// By number of the page.
pub type Pages = BTreeMap<u64, Uses>;

/// Nodes of threads that are to be elsewhere, by number of the thread.
pub type Moved = HashMap<u32, u16>;

/// What was recorded by thread rather than by node: the node where it was recorded, and the number of the thread plus 1.
pub type ByThread = BTreeMap<u64, BTreeMap<(u16, u32), Use>>;

/// Bytes of a page in this run.
pub fn page_bytes(analysis: &Analysis) -> u64 {
    u64::from(analysis.run.page_bytes).max(1).next_power_of_two().max(4096)
}

/// The most pages that one cell is spread over: a hostile recording has larger ones.
const MOST_IN_A_CELL: u64 = 1 << 14;

/// What the cells of an area and node have in all: first fetches and writes, and fetches beyond the first of each cell.
#[derive(Clone, Copy, Default)]
struct Seen {
    misses: f64,
    again: f64,
}

/// The pages of each area by thread. Cells tell of misses and upgrades. The diffs of an area and node are shared out in
/// proportion to them; the notices in proportion to fetches beyond the first, because what a node has lost it fetches
/// again, if it needs it.
pub fn by_thread(analysis: &Analysis) -> Vec<ByThread> {
    let page_bytes = page_bytes(analysis);
    let totals_of = |cell: &Cell| -> Option<Totals> {
        let node = analysis.areas.get(cell.area as usize)?.nodes.get(usize::from(cell.node))?;
        Some(node.totals)
    };
    let count_of = |cell: &Cell| {
        let length = 1_u64.checked_shl(cell.unit.into()).unwrap_or(u64::MAX);
        length.div_ceil(page_bytes).clamp(1, MOST_IN_A_CELL)
    };
    let misses = |cell: &Cell| f64::from(cell.reads) + f64::from(cell.writes);
    // Of writes, some have fetched the page and some were upgrades.
    let fetches = |cell: &Cell, totals: &Totals| {
        let fetched = totals.writes as f64 / (totals.writes + totals.upgrades).max(1) as f64;
        f64::from(cell.reads) + f64::from(cell.writes) * fetched
    };
    let again = |cell: &Cell, totals: &Totals| (fetches(cell, totals) - count_of(cell) as f64).max(0.0);
    let mut seen: HashMap<(u32, u16), Seen> = HashMap::new();
    for cell in &analysis.cells {
        let Some(totals) = totals_of(cell) else { continue };
        let sum = seen.entry((cell.area, cell.node)).or_default();
        sum.misses += misses(cell);
        sum.again += again(cell, &totals);
    }
    let mut areas = vec![ByThread::new(); analysis.areas.len()];
    for cell in &analysis.cells {
        let Some(totals) = totals_of(cell) else { continue };
        let all = seen[&(cell.area, cell.node)];
        let count = count_of(cell);
        let part = 1.0 / count as f64;
        let share = misses(cell) / all.misses.max(1.0) * part;
        let notices = match all.again > 0.0 {
            true => totals.notices as f64 * again(cell, &totals) / all.again * part,
            false => 0.0,
        };
        let usage = Use {
            requests: (totals.requests() - totals.notices) as f64 * share + notices,
            bytes: cell.bytes as f64 * part,
            fetches: fetches(cell, &totals) * part,
            reads: f64::from(cell.reads) * part,
            writes: f64::from(cell.writes) * part,
            notices,
        };
        let first = cell.address / page_bytes;
        for page in first..first.saturating_add(count) {
            let threads = areas[cell.area as usize].entry(page).or_default();
            let known = threads.entry((cell.node, cell.thread)).or_default();
            *known = known.plus(usage);
        }
    }
    areas
}

/// The pages of each area by node, with threads where they will be.
pub fn by_area(analysis: &Analysis, moved: &Moved) -> Vec<Pages> {
    let uses = |threads: BTreeMap<(u16, u32), Use>| {
        let mut by_origin: BTreeMap<(u16, u16), Use> = BTreeMap::new();
        for ((node, thread), usage) in threads {
            let there = thread.checked_sub(1).and_then(|number| moved.get(&number)).copied().unwrap_or(node);
            let known = by_origin.entry((there, node)).or_default();
            *known = known.plus(usage);
        }
        let mut uses = Uses::new();
        for ((there, _), usage) in by_origin {
            let known = uses.entry(there).or_default();
            *known = known.joined(usage);
        }
        uses
    };
    let area = |area: ByThread| area.into_iter().map(|(page, threads)| (page, uses(threads))).collect();
    by_thread(analysis).into_iter().map(area).collect()
}
