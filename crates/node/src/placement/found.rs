//! Where pages are.

use crate::Node;
use crate::wire::Wire;
use gondwana_coherence::{HomeRole, Page};
use gondwana_memory::PAGE_SIZE;
use gondwana_topology::NodeId;
use std::ops::Range;

/// Most pages that one message asks about.
const MOST_ASKED: u32 = 4096;

/// Consecutive pages with the same home: the first one, how many, the home.
pub(crate) type HomeRun = (u32, u32, NodeId);

impl Node {
    /// Finds the homes of the pages that have a byte in a range of addresses: calls `visit` with the numbers of pages
    /// within the range that have the same home, and that home. Pages that a policy has placed have their home before
    /// they are touched; pages that nobody has touched or placed, that are not shared, or whose home is just moving, are
    /// left out.
    ///
    /// Each node is asked once for some thousand pages. `visit` may touch shared memory.
    pub fn visit_homes(&'static self, addresses: &Range<usize>, mut visit: impl FnMut(Range<usize>, NodeId)) {
        let start = addresses.start / PAGE_SIZE * PAGE_SIZE;
        let pages = addresses.end.saturating_sub(start).div_ceil(PAGE_SIZE);
        let page_of = |index: usize| self.geometry.page_of(start + index * PAGE_SIZE);
        let mut index = 0;
        while index < pages {
            let Some(first) = page_of(index) else {
                index += 1;
                continue;
            };
            let most = u32::try_from(pages - index).unwrap_or(MOST_ASKED).min(MOST_ASKED);
            let is_next = |more: u32| page_of(index + more as usize) == Some(first + more);
            let count = (1..most).find(|&more| !is_next(more)).unwrap_or(most);
            for node in (0..self.boot.nodes).map(NodeId) {
                let runs = match node == self.me {
                    true => self.privately(move || self.known_homes(first, count)),
                    false => self.ask_homes(node, first, count),
                };
                for (from, length, home) in runs {
                    let from = index + (from - first) as usize;
                    visit(from..from + length as usize, home);
                }
            }
            index += count as usize;
        }
    }

    fn ask_homes(&'static self, node: NodeId, first: u32, count: u32) -> Vec<HomeRun> {
        let name = self.placement.next_question();
        self.ask(node, move |ticket| Wire::Homes { ticket, name, first, count });
        self.privately(move || self.placement.take_homes(name)).unwrap_or_default()
    }

    /// Another node has said what it knows of homes; the answer to the question as such follows.
    pub(crate) fn note_homes(&self, name: u64, runs: Vec<HomeRun>) {
        self.placement.note_homes(name, runs);
    }

    /// The pages of which this node is home, and those that nobody has touched and of which only this node knows where
    /// their home is to be.
    pub(crate) fn known_homes(&self, first: u32, count: u32) -> Vec<HomeRun> {
        let mut core = self.core();
        let mut runs: Vec<HomeRun> = vec![];
        for page in first..first + count {
            let home = match core.find_home_role(Page(page)) {
                HomeRole::Home => self.me,
                HomeRole::Placed(home) => home,
                HomeRole::Elsewhere | HomeRole::Untouched => continue,
            };
            match runs.last_mut() {
                Some((start, length, same)) if *start + *length == page && *same == home => *length += 1,
                _ => runs.push((page, 1, home)),
            }
        }
        runs
    }
}
