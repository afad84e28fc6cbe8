//! Small blocks on pages of their own, under sequential consistency.
//!
//! A program mostly makes what each of its threads works on in a loop: a few blocks of one size, at one call. Beside each other on a page
//! they are falsely shared, and under sequential consistency such a page goes to and fro with each access. So the first blocks of each
//! size that a call allocates get pages of their own. A call that allocates many makes parts of something larger, which would take too
//! much memory and too many faults like that: its later blocks are packed.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// How many blocks of a call and size are apart. A program that runs on a few nodes rarely has more threads.
const MOST: u8 = 16;

/// Calls and sizes that are told apart, more or less: those with the same hash share a count.
const COUNTS: usize = 1 << 12;

/// The most pages for all such blocks of a node: what a program allocates with many sizes at many calls is packed after that.
const MOST_PAGES: usize = 4096;

/// Larger blocks are whole pages anyway.
pub(crate) const LARGEST: usize = 32 << 10;

/// What a node has allocated apart.
pub(crate) struct Apart {
    counts: Box<[AtomicU8]>,
    pages: AtomicUsize,
}

impl Apart {
    pub(crate) fn new() -> Self {
        Self { counts: (0..COUNTS).map(|_| AtomicU8::new(0)).collect(), pages: AtomicUsize::new(0) }
    }

    /// True if a block of this size, for the call that returns to `caller`, is to be apart.
    #[inline]
    pub(crate) fn takes(&self, caller: usize, size: usize) -> bool {
        // Steps of at most an eighth, as in the heap: what grows is not another kind of block at each byte.
        let rounded = size.next_multiple_of(1 << size.max(128).ilog2().saturating_sub(3));
        let hash = (caller ^ rounded.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = &self.counts[hash >> (usize::BITS - COUNTS.ilog2())];
        // Threads that come at the same time may take one more.
        let before = count.load(Ordering::Relaxed);
        before < MOST && size <= LARGEST && self.begin(count, before, size)
    }

    #[cold]
    fn begin(&self, count: &AtomicU8, before: u8, size: usize) -> bool {
        count.store(before + 1, Ordering::Relaxed);
        let pages = size.div_ceil(gondwana_memory::PAGE_SIZE);
        self.pages.fetch_add(pages, Ordering::Relaxed) + pages <= MOST_PAGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_blocks_of_a_call_and_size_are_apart() {
        let apart = Apart::new();
        for caller in [0x1000, 0x1005] {
            for size in [48, 5400] {
                let taken = (0..100).filter(|_| apart.takes(caller, size)).count();
                assert_eq!(taken, usize::from(MOST), "{caller:#x}, {size}");
            }
        }
        assert!(!apart.takes(0x2000, LARGEST + 1));
    }

    #[test]
    fn strings_of_many_lengths_are_not_many_kinds() {
        let apart = Apart::new();
        let taken = (1..=128).filter(|&size| apart.takes(0x1000, size)).count();
        assert_eq!(taken, 8 * usize::from(MOST));
    }

    #[test]
    fn a_node_has_not_more_than_so_many_pages_for_them() {
        let apart = Apart::new();
        let taken = (0..1 << 20).filter(|&caller| apart.takes(caller, 4096)).count();
        assert_eq!(taken, MOST_PAGES);
    }
}
