//! The use of the pages of an area, in requests.

use crate::{Analysis, HomeUse, PageUse};
use gondwana_page::PAGE_SIZE;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Homes take turns if all but the most frequent one have sent this share of the answers.
const BY_TURNS: f64 = 0.25;

/// The use of one page by one node or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// Times that a thread waited for the page.
    pub fetches: f64,
    /// Of the fetches, those for reads.
    pub reads: f64,
    /// Times that a thread began to write.
    pub writes: f64,
    /// How often the page was prefetched.
    pub ahead: f64,
    /// Diffs sent.
    pub diffs: f64,
    /// Write notices received.
    pub notices: f64,
    /// Bytes that moved.
    pub bytes: f64,
}

impl Usage {
    /// The requests for the page.
    pub(super) fn requests(&self) -> f64 {
        self.fetches + self.diffs + self.notices
    }

    /// How often the page was written, as far as is known.
    pub(super) fn written(&self) -> f64 {
        self.writes.max(self.diffs)
    }

    /// Combines the numbers of both, one by one.
    fn with(self, other: Self, both: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            fetches: both(self.fetches, other.fetches),
            reads: both(self.reads, other.reads),
            writes: both(self.writes, other.writes),
            ahead: both(self.ahead, other.ahead),
            diffs: both(self.diffs, other.diffs),
            notices: both(self.notices, other.notices),
            bytes: both(self.bytes, other.bytes),
        }
    }

    /// The use by threads on one node: what one fetches, the others have, too.
    fn joined(self, other: Self) -> Self {
        self.with(other, f64::max)
    }

    /// The sum of both.
    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    /// All numbers multiplied by a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        self.with(self, |number, _| number * factor)
    }
}

/// The use of one page by threads or nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UsedPage<By: Ord> {
    /// The use by each of them.
    pub uses: BTreeMap<By, Usage>,
    /// The weight of the evidence that each node is the home.
    homes: BTreeMap<u16, f64>,
    /// The homes and what they used of the page themselves, where the recording has that.
    known: BTreeMap<u16, Usage>,
    /// For each node, the most notices about its writes that one node has received.
    written: BTreeMap<u16, f64>,
}

impl<By: Ord> Default for UsedPage<By> {
    fn default() -> Self {
        Self {
            uses: BTreeMap::new(),
            homes: BTreeMap::new(),
            known: BTreeMap::new(),
            written: BTreeMap::new(),
        }
    }
}

impl<By: Ord> UsedPage<By> {
    /// The home, if the page was in any transaction: of several, the one that used it most, or else was asked most.
    pub(super) fn home(&self) -> Option<u16> {
        let likely = || self.homes.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(home, _)| *home);
        let known = self.known.iter().max_by(|a, b| a.1.requests().total_cmp(&b.1.requests()));
        known.map(|(home, _)| *home).or_else(likely)
    }

    /// The homes whose use of the page is known.
    pub(super) fn known_homes(&self) -> impl Iterator<Item = u16> {
        self.known.keys().copied()
    }

    /// What a home used of the page itself, where that is known.
    pub(super) fn known_use(&self, home: u16) -> Option<Usage> {
        self.known.get(&home).copied()
    }

    /// True if nodes were home by turns: more than once before the node that was home for longest.
    pub(super) fn wanders(&self) -> bool {
        let home = self.home();
        let elsewhere: f64 =
            self.homes.iter().filter(|(node, _)| Some(**node) != home).map(|(_, weight)| weight).sum();
        let all: f64 = self.homes.values().sum();
        self.known.is_empty() && elsewhere >= all * BY_TURNS && elsewhere > self.uses.len() as f64
    }

    /// All nodes that were its home at some time.
    pub(super) fn homes(&self) -> impl Iterator<Item = u16> {
        self.homes.keys().copied()
    }

    /// How often other nodes lost the page because this node wrote.
    pub(super) fn seen_to_write(&self, node: u16) -> f64 {
        self.written.get(&node).copied().unwrap_or(0.0)
    }
}

/// The pages of an area by node, by number of the page.
pub(super) type Pages = BTreeMap<u64, UsedPage<u16>>;

/// The pages of an area by thread: the node where it was recorded, and the number of the thread plus 1.
pub(super) type ByThread = BTreeMap<u64, UsedPage<(u16, u32)>>;

/// New nodes of threads, by number of the thread.
pub(super) type Moved = HashMap<u32, u16>;

/// Bytes of a page in this run.
pub(super) fn page_bytes(analysis: &Analysis) -> u64 {
    u64::from(analysis.run.page_bytes).max(1).next_power_of_two().max(PAGE_SIZE as u64)
}

/// The most pages over which a unit is spread: a hostile recording has larger units.
const MOST_IN_A_UNIT: u64 = 1 << 14;

/// The pages of each area by thread.
pub(super) fn by_thread(analysis: &Analysis) -> Vec<ByThread> {
    let page_bytes = page_bytes(analysis);
    let mut areas = vec![ByThread::new(); analysis.areas.len()];
    for known in &analysis.pages {
        let Some(area) = areas.get_mut(known.area as usize) else { continue };
        let length = 1_u64.checked_shl(known.unit.into()).unwrap_or(u64::MAX);
        let count = length.div_ceil(page_bytes).clamp(1, MOST_IN_A_UNIT);
        let part = of_one(known).times(1.0 / count as f64);
        let first = known.address / page_bytes;
        for number in first..first.saturating_add(count) {
            let page = area.entry(number).or_default();
            let uses = page.uses.entry((known.node, known.thread)).or_default();
            *uses = uses.plus(part);
            let most = page.written.entry(known.peer).or_default();
            *most = most.max(part.notices);
            let for_home = part.fetches + part.ahead + part.diffs;
            if known.peer != known.node && for_home > 0.0 {
                *page.homes.entry(known.peer).or_default() += for_home;
            }
        }
    }
    if !analysis.homes.is_empty() {
        for (area, pages) in analysis.areas.iter().zip(&mut areas) {
            add_homes(analysis, &area.ranges, page_bytes, pages);
        }
    }
    areas.iter_mut().flat_map(BTreeMap::values_mut).for_each(share_out_notices);
    areas
}

fn of_one(known: &PageUse) -> Usage {
    let number = |count: u32| f64::from(count);
    Usage {
        fetches: number(known.reads) + number(known.writes),
        reads: number(known.reads),
        writes: number(known.writes) + if known.thread > 0 { number(known.upgrades) } else { 0.0 },
        ahead: number(known.ahead),
        diffs: number(known.diffs),
        notices: number(known.notices),
        bytes: known.bytes as f64,
    }
}

/// Adds what is known of homes to the pages of some ranges, and pages that only their home used.
fn add_homes(analysis: &Analysis, ranges: &[Range<u64>], page_bytes: u64, pages: &mut ByThread) {
    for range in ranges.iter().filter(|range| range.start < range.end) {
        let numbers = (range.start / page_bytes, 0)..=((range.end - 1) / page_bytes, u16::MAX);
        for ((number, node), home) in analysis.homes.range(numbers) {
            pages.entry(*number).or_default().known.insert(*node, of_home(home));
        }
    }
}

/// The use of a page by its home, as if that were another node.
fn of_home(home: &HomeUse) -> Usage {
    let [reads, writes, diffs, bytes] =
        [home.reads, home.writes, home.diffs, home.bytes].map(|number| number as f64);
    Usage { fetches: reads + writes, reads, writes, diffs, bytes, ..Usage::default() }
}

/// Transactions without a thread, such as notices, count for the threads of the node that use the page.
fn share_out_notices(page: &mut UsedPage<(u16, u32)>) {
    let nodes: Vec<u16> =
        page.uses.keys().filter(|(_, thread)| *thread == 0).map(|(node, _)| *node).collect();
    for node in nodes {
        let of_node = (node, 1)..=(node, u32::MAX);
        let weight = |uses: &Usage| uses.fetches + uses.ahead + uses.writes;
        let all: f64 = page.uses.range(of_node.clone()).map(|(_, uses)| weight(uses)).sum();
        if all > 0.0
            && let Some(nobodys) = page.uses.remove(&(node, 0))
        {
            for (_, uses) in page.uses.range_mut(of_node) {
                *uses = uses.plus(nobodys.times(weight(uses) / all));
            }
        }
    }
}

/// The pages of each area by node, with threads on their new nodes.
pub(super) fn by_area(analysis: &Analysis, moved: &Moved) -> Vec<Pages> {
    let by_node = |page: UsedPage<(u16, u32)>| {
        let mut by_origin: BTreeMap<(u16, u16), Usage> = BTreeMap::new();
        for ((node, thread), uses) in page.uses {
            let there = thread.checked_sub(1).and_then(|number| moved.get(&number)).copied().unwrap_or(node);
            let known = by_origin.entry((there, node)).or_default();
            *known = known.plus(uses);
        }
        let mut uses: BTreeMap<u16, Usage> = BTreeMap::new();
        for ((there, _), more) in by_origin {
            let known = uses.entry(there).or_default();
            *known = known.joined(more);
        }
        UsedPage { uses, homes: page.homes, known: page.known, written: page.written }
    };
    let area = |area: ByThread| area.into_iter().map(|(number, page)| (number, by_node(page))).collect();
    by_thread(analysis).into_iter().map(area).collect()
}
