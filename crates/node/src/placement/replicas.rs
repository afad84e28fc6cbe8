//! Areas that are mostly read: a node that reads one page of them soon reads others.
//!
//! All nodes know all areas. Variables are known from the start; of what is allocated, the node that allocates tells the
//! others. A node that has not heard yet fetches as usual.

use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::Page;
use gondwana_locks::lock;
use gondwana_topology::NodeId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pages that are brought together: a limit to what one read sets in motion.
const WINDOW: u32 = 1024;

/// The areas, as this node knows them.
#[derive(Debug, Default)]
pub(crate) struct Replicated {
    /// There have been some.
    any: AtomicBool,
    /// By first page, how many pages. They do not overlap.
    areas: Mutex<BTreeMap<u32, u32>>,
}

impl Replicated {
    /// Adds an area, in place of those that it overlaps.
    pub(crate) fn insert(&self, first: u32, count: u32) {
        self.remove(first, count);
        self.with(|areas| areas.insert(first, count));
        self.any.store(true, Ordering::Relaxed);
    }

    /// Forgets all areas with one of these pages; true if there was one.
    pub(crate) fn remove(&self, first: u32, count: u32) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let pages = first..first.saturating_add(count);
        self.with(|areas| {
            let before = areas.len();
            areas.retain(|start, length| *start >= pages.end || *start + *length <= pages.start);
            areas.len() < before
        })
    }

    /// The pages to bring when one is read.
    #[inline]
    pub(crate) fn around(&self, page: u32) -> Option<Range<u32>> {
        if self.any.load(Ordering::Relaxed) { self.window(page) } else { None }
    }

    fn window(&self, page: u32) -> Option<Range<u32>> {
        let (start, count) = self.with(|areas| areas.range(..=page).next_back().map(|(a, b)| (*a, *b)))?;
        let window = start + (page - start) / WINDOW * WINDOW;
        (page - start < count).then(|| window..(window + WINDOW).min(start + count))
    }

    /// Handlers of the program's signals must not find the list locked.
    fn with<R>(&self, use_areas: impl FnOnce(&mut BTreeMap<u32, u32>) -> R) -> R {
        Thread::in_runtime(|| use_areas(&mut lock(&self.areas)))
    }
}

impl Node {
    /// What has just been allocated here is mostly read (`on`), or no longer.
    pub(crate) fn replicate(&'static self, first: u32, count: u32, on: bool) {
        let known = if on {
            self.placement.replicated.insert(first, count);
            true
        } else {
            self.placement.replicated.remove(first, count)
        };
        if known {
            self.privately(move || {
                for node in (0..self.boot.nodes).map(NodeId).filter(|node| *node != self.me) {
                    self.core().env.post(node, &Wire::Replicate { first, count, on }, &[]);
                }
            });
        }
    }

    /// A thread reads a page of such an area, which is not here: asks for it and then for those around it.
    pub(crate) fn bring_around(&'static self, page: u32, window: &Range<u32>) {
        let (start, count) = (window.start, window.end - window.start);
        self.privately(move || self.core().replicate(Page(start), count, Page(page)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_brings_the_window_of_its_area() {
        let replicated = Replicated::default();
        assert_eq!(replicated.around(5), None);
        replicated.insert(100, 1500);
        assert_eq!(replicated.around(99), None);
        assert_eq!(replicated.around(100), Some(100..1124));
        assert_eq!(replicated.around(1124), Some(1124..1600));
        assert_eq!(replicated.around(1600), None);
    }

    #[test]
    fn what_is_allocated_anew_is_forgotten() {
        let replicated = Replicated::default();
        assert!(!replicated.remove(0, 10));
        replicated.insert(100, 10);
        replicated.insert(200, 10);
        assert!(!replicated.remove(110, 90));
        assert!(replicated.remove(205, 1));
        assert_eq!((replicated.around(204), replicated.around(104)), (None, Some(100..110)));
    }
}
