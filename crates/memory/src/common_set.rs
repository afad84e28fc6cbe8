//! Which pages this node uses in the common file, for threads that hold no lock.

use crate::sparse_words::SparseWords;
use crate::{Geometry, MemoryError, PAGE_SIZE};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Pages that the program uses in the common file. What is in the set stays there: the kernel can access it as the program can, at any time.
#[derive(Clone, Debug)]
pub struct CommonSet(Arc<SparseWords>);

impl CommonSet {
    /// None of so many pages.
    pub(crate) fn new(pages: u32) -> Result<Self, MemoryError> {
        Ok(Self(Arc::new(SparseWords::new(pages.div_ceil(u64::BITS) as usize)?)))
    }

    pub(crate) fn insert(&self, pages: Range<u32>) {
        for (word, bits) in words(pages) {
            self.0[word].fetch_or(bits, Ordering::Release);
        }
    }

    /// True if all of these addresses are in such pages.
    #[must_use]
    pub fn holds(&self, geometry: &Geometry, start: usize, length: usize) -> bool {
        let Some(first) = geometry.page_of(start) else { return false };
        let last = start.checked_add(length.max(1) - 1).and_then(|last| geometry.page_of(last));
        // In one segment pages and addresses go along with each other.
        let pages =
            u32::try_from((start % PAGE_SIZE + length.max(1)).div_ceil(PAGE_SIZE)).unwrap_or(u32::MAX);
        let Some(end) = first.checked_add(pages) else { return false };
        last == Some(end - 1)
            && words(first..end).all(|(word, bits)| self.0[word].load(Ordering::Acquire) & bits == bits)
    }
}

/// The words of some pages, each with their bits in it.
fn words(pages: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, end) = (pages.start, pages.end);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (word, first) = (at / u64::BITS, at % u64::BITS);
        let count = (u64::BITS - first).min(end - at);
        at += count;
        Some((word as usize, (u64::MAX >> (u64::BITS - count)) << first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SPAN_BASE;
    use proptest::prelude::*;

    const PAGES: u32 = 300;

    proptest! {
        #[test]
        fn memory_is_held_if_all_its_pages_are_in(
            added in proptest::collection::vec((0..PAGES, 1_u32..100), 0..6),
            start in 0..PAGES as usize * PAGE_SIZE,
            length in 0_usize..80 * PAGE_SIZE,
        ) {
            let geometry = Geometry::new(PAGES, &[]);
            let set = CommonSet::new(PAGES).unwrap();
            let mut plain = [false; PAGES as usize];
            for (first, count) in added {
                let end = (first + count).min(PAGES);
                set.insert(first..end);
                plain[first as usize..end as usize].fill(true);
            }
            let last = start + length.max(1) - 1;
            let expected = (start / PAGE_SIZE..=last / PAGE_SIZE).all(|page| plain.get(page) == Some(&true));
            prop_assert_eq!(set.holds(&geometry, SPAN_BASE + start, length), expected);
        }
    }
}
