//! The recorded states of all pages.

use super::record;
use crate::MemoryError;
use crate::mapping::SparseTable;
use std::ops::Range;

/// Pages of a block, 16 MiB: programs reserve terabytes without access, of which they use little.
const BLOCK: u32 = 1 << 12;

/// The limits that the program sets are in these bits.
const LIMITS: u8 = record::UNREADABLE | record::UNWRITABLE | record::EXECUTABLE;

/// Beside the limits of a block: its pages have these and not their own.
const OF_ALL: u8 = 1;

/// One byte for each page, and one for each block, which has the limits of its pages if they were set for all of them at once.
pub(super) struct PageStates {
    pages: SparseTable<u8>,
    blocks: SparseTable<u8>,
}

impl PageStates {
    pub(super) fn new(pages: usize) -> Result<Self, MemoryError> {
        Ok(Self {
            pages: SparseTable::new(pages)?,
            blocks: SparseTable::new(pages.div_ceil(BLOCK as usize))?,
        })
    }

    /// The state of a page.
    pub(super) fn get(&self, page: u32) -> u8 {
        let (own, all) = (self.pages.get(page), self.blocks.get(page / BLOCK));
        if all == 0 { own } else { own & !LIMITS | all & LIMITS }
    }

    /// Sets the state of a page, whose limits stay as they are.
    pub(super) fn set(&mut self, page: u32, state: u8) {
        self.pages.set(page, state);
    }

    /// Sets the limits of pages.
    pub(super) fn limit(&mut self, pages: Range<u32>, limits: u8) {
        let mut start = pages.start;
        while start < pages.end {
            let block = start / BLOCK;
            let of_block = block * BLOCK..(block + 1).saturating_mul(BLOCK);
            let end = pages.end.min(of_block.end);
            if start == of_block.start && end == of_block.end {
                self.blocks.set(block, limits | OF_ALL);
            } else {
                let all = self.blocks.get(block);
                if all != 0 {
                    self.limit_each(of_block, all & LIMITS);
                    self.blocks.set(block, 0);
                }
                self.limit_each(start..end, limits);
            }
            start = end;
        }
    }

    /// Sets the limits of pages one by one. Those behind the last one do not exist.
    fn limit_each(&mut self, pages: Range<u32>, limits: u8) {
        for page in pages.start..pages.end.min(self.pages.len()) {
            self.pages.set(page, self.pages.get(page) & !LIMITS | limits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u32 = 3 * BLOCK + 100;

    proptest! {
        #[test]
        fn limits_are_those_that_were_set_last(
            changes in proptest::collection::vec((0..PAGES, 0..PAGES, 0_u8..8, any::<bool>()), 1..20),
        ) {
            let mut states = PageStates::new(PAGES as usize).unwrap();
            let mut plain = vec![0_u8; PAGES as usize];
            for (a, b, limits, whole) in changes {
                let (mut start, mut end) = (a.min(b), a.max(b));
                if whole {
                    (start, end) = (start / BLOCK * BLOCK, end.next_multiple_of(BLOCK).min(PAGES));
                }
                states.limit(start..end, limits << 4);
                for page in start..end {
                    plain[page as usize] = plain[page as usize] & !LIMITS | limits << 4;
                }
                // The state of a page changes beside its limits.
                let state = states.get(a) ^ record::POPULATED;
                states.set(a, state);
                plain[a as usize] ^= record::POPULATED;
            }
            for page in 0..PAGES {
                prop_assert_eq!(states.get(page), plain[page as usize], "page {}", page);
            }
        }
    }
}
