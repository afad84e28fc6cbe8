//! Runs of whole pages: large blocks, page ranges and further slabs.

use std::collections::{BTreeMap, BTreeSet};

/// The purpose of an allocated run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A large block, freed as a whole.
    Block,
    /// A range of pages, of which any part may be freed.
    Pages,
    /// A slab, kept for good.
    Slab,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    pages: usize,
    purpose: Purpose,
}

/// A run of pages just taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of its first page.
    pub start: usize,
    /// None of its pages was ever given out.
    pub fresh: bool,
}

/// Which pages are taken. Pages are named by address divided by page size.
///
/// Free pages below the frontier are kept as maximal runs; pages from the frontier on were never given out.
#[derive(Debug)]
pub(super) struct Extents {
    frontier: usize,
    end: usize,
    /// Length of each free run by its first page.
    free: BTreeMap<usize, usize>,
    /// The same runs as (length, first page), to find the best fit.
    free_by_length: BTreeSet<(usize, usize)>,
    live: BTreeMap<usize, Live>,
}

impl Extents {
    /// Free pages from `start` to `end`.
    pub(super) fn new(start: usize, end: usize) -> Self {
        let (free, free_by_length, live) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { frontier: start, end, free, free_by_length, live }
    }

    /// Takes `pages` pages, at least one, of which the first is a multiple of `align`, a power of two: from the
    /// shortest free run with room, else from the frontier.
    pub(super) fn take(&mut self, pages: usize, align: usize, purpose: Purpose) -> Option<Run> {
        let align_up = |start: usize| start.checked_next_multiple_of(align);
        let best = self.free_by_length.range((pages, 0)..).find_map(|&(length, start)| {
            let aligned = align_up(start)?;
            (aligned - start + pages <= length).then_some((start, length, aligned))
        });
        let (start, end, aligned) = match best {
            Some((start, length, aligned)) => (start, start + length, aligned),
            None => {
                let start = self.free_run_ending_at(self.frontier).unwrap_or(self.frontier);
                let aligned = align_up(start)?;
                let end = aligned.checked_add(pages).filter(|&end| end <= self.end)?;
                (start, end, aligned)
            }
        };
        let fresh = aligned >= self.frontier;
        self.remove_free(start);
        self.frontier = self.frontier.max(end);
        self.insert_free(start, aligned - start);
        self.insert_free(aligned + pages, end - aligned - pages);
        self.live.insert(aligned, Live { pages, purpose });
        Some(Run { start: aligned, fresh })
    }

    /// Frees the block that begins at a page; false if there is none.
    pub(super) fn free_block(&mut self, start: usize) -> bool {
        let Some(pages) = self.block(start) else { return false };
        self.live.remove(&start);
        self.give_back(start, pages);
        true
    }

    /// How many pages the block that begins at a page has.
    pub(super) fn block(&self, start: usize) -> Option<usize> {
        self.live.get(&start).filter(|live| live.purpose == Purpose::Block).map(|live| live.pages)
    }

    /// Makes the block that begins at a page shorter, or longer by what is free behind it; false if that is
    /// impossible.
    pub(super) fn resize_block(&mut self, start: usize, pages: usize) -> bool {
        let Some(old) = self.block(start) else { return false };
        let (Some(end), old_end) = (start.checked_add(pages), start + old) else { return false };
        if end < old_end {
            self.give_back(end, old_end - end);
        } else if end > old_end {
            let free_end = match self.free.get(&old_end) {
                Some(&length) => old_end + length,
                None => old_end,
            };
            // A run that ends at the frontier can grow behind it.
            let limit = if free_end == self.frontier { self.end } else { free_end };
            if end > limit {
                return false;
            }
            self.remove_free(old_end);
            self.insert_free(end, free_end.saturating_sub(end));
            self.frontier = self.frontier.max(end);
        }
        self.live.insert(start, Live { pages, purpose: Purpose::Block });
        true
    }

    /// Frees pages that were taken as [`Purpose::Pages`], by one call or by several; false, and nothing freed, if
    /// one of them was not.
    pub(super) fn free_pages(&mut self, start: usize, pages: usize) -> bool {
        let Some(end) = start.checked_add(pages) else { return false };
        let mut runs = Vec::new();
        let mut next = start;
        while next < end {
            match self.live.range(..=next).next_back() {
                Some((&run, live)) if live.purpose == Purpose::Pages && next < run + live.pages => {
                    runs.push((run, run + live.pages));
                    next = run + live.pages;
                }
                _ => return false,
            }
        }
        for (run, run_end) in runs {
            self.live.remove(&run);
            for (from, to) in [(run, start), (end, run_end)] {
                if from < to {
                    self.live.insert(from, Live { pages: to - from, purpose: Purpose::Pages });
                }
            }
        }
        self.give_back(start, pages);
        true
    }

    /// How many pages are taken.
    pub(super) fn live_pages(&self) -> usize {
        self.live.values().map(|live| live.pages).sum()
    }

    /// How many runs the free pages form; the pages never given out count as part of the last.
    pub(super) fn free_runs(&self) -> usize {
        let last_is_apart = self.free_run_ending_at(self.frontier).is_none() && self.frontier < self.end;
        self.free.len() + usize::from(last_is_apart)
    }

    /// Adds a run to the free ones, joined with its neighbours.
    fn give_back(&mut self, start: usize, pages: usize) {
        let (mut start, mut end) = (start, start + pages);
        if let Some(before) = self.free_run_ending_at(start) {
            self.remove_free(before);
            start = before;
        }
        if let Some(length) = self.remove_free(end) {
            end += length;
        }
        self.insert_free(start, end - start);
    }

    fn free_run_ending_at(&self, end: usize) -> Option<usize> {
        let (&start, &length) = self.free.range(..end).next_back()?;
        (start + length == end).then_some(start)
    }

    fn insert_free(&mut self, start: usize, pages: usize) {
        if pages > 0 {
            self.free.insert(start, pages);
            self.free_by_length.insert((pages, start));
        }
    }

    fn remove_free(&mut self, start: usize) -> Option<usize> {
        let length = self.free.remove(&start)?;
        self.free_by_length.remove(&(length, start));
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Purpose::{Block, Pages};

    #[test]
    fn the_best_fit_is_taken_and_neighbours_join() {
        let mut extents = Extents::new(100, 200);
        let starts: Vec<usize> =
            [10, 1, 5, 1, 6, 1].map(|pages| extents.take(pages, 1, Block).unwrap().start).into();
        assert_eq!(starts, [100, 110, 111, 116, 117, 123]);
        for &start in [100, 111, 117].iter() {
            assert!(extents.free_block(start) && !extents.free_block(start));
        }
        assert_eq!(extents.take(5, 1, Block), Some(Run { start: 111, fresh: false }));
        assert_eq!(extents.take(6, 1, Block), Some(Run { start: 117, fresh: false }));
        assert_eq!(extents.take(77, 1, Block), None);
        assert_eq!(extents.take(76, 1, Block), Some(Run { start: 124, fresh: true }));
        for start in [110, 116, 123, 111, 117, 124] {
            assert!(extents.free_block(start));
        }
        assert_eq!((extents.free_runs(), extents.live_pages()), (1, 0));
        assert_eq!(extents.take(100, 1, Block), Some(Run { start: 100, fresh: false }));
    }

    #[test]
    fn a_run_at_the_frontier_goes_on_behind_it() {
        let mut extents = Extents::new(100, 120);
        assert_eq!(extents.take(4, 1, Block), Some(Run { start: 100, fresh: true }));
        assert!(extents.free_block(100));
        assert_eq!(extents.take(8, 1, Block), Some(Run { start: 100, fresh: false }));
        assert_eq!(extents.take(2, 16, Block), Some(Run { start: 112, fresh: true }), "aligned");
        assert_eq!(extents.take(4, 1, Block), Some(Run { start: 108, fresh: false }), "the gap is used");
    }

    #[test]
    fn blocks_grow_only_into_free_pages() {
        let mut extents = Extents::new(100, 120);
        for pages in [4, 4, 4] {
            extents.take(pages, 1, Block).unwrap();
        }
        assert!(!extents.resize_block(100, 5), "its neighbour is taken");
        assert!(extents.resize_block(108, 12) && !extents.resize_block(108, 13), "up to the end");
        assert!(extents.resize_block(108, 2) && extents.resize_block(108, 6));
        assert!(extents.free_block(104));
        assert!(extents.resize_block(100, 8) && !extents.resize_block(100, 9));
        assert!(extents.resize_block(100, 6));
        assert_eq!(extents.take(2, 1, Block).map(|run| run.start), Some(106));
        assert!(!extents.resize_block(101, 1), "no block begins there");
    }

    #[test]
    fn page_ranges_are_freed_in_pieces_or_together() {
        let mut extents = Extents::new(100, 140);
        assert_eq!(extents.take(10, 1, Pages).map(|run| run.start), Some(100));
        assert_eq!(extents.take(10, 1, Pages).map(|run| run.start), Some(110));
        assert_eq!(extents.take(1, 1, Block).map(|run| run.start), Some(120));
        assert!(!extents.free_block(100), "not a block");
        assert!(!extents.free_pages(115, 6), "the last is a block's");
        assert_eq!(extents.live_pages(), 21);
        assert!(extents.free_pages(105, 10));
        assert!(!extents.free_pages(104, 2), "one is free already");
        assert_eq!(extents.live_pages(), 11);
        assert!(extents.free_pages(100, 5) && extents.free_pages(115, 5) && extents.free_block(120));
        assert_eq!((extents.free_runs(), extents.live_pages()), (1, 0));
    }
}
