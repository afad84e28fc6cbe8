//! Which bytes of a page were changed, by many diffs together.

use super::{Diff, bits};

/// The bytes of a page that diffs have changed, in the format of diffs: whole blocks are bits, so a page of which
/// every byte was written takes no more room than an untouched one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Blocks of 64 bytes of which every byte was changed, one bit each.
    full: u64,
    /// Blocks of which some bytes were changed, one bit each.
    partial: u64,
    /// For each of the latter in ascending order, a bit for each byte.
    masks: Vec<u64>,
}

impl Footprint {
    /// Adds the bytes of a diff; false if all of them were there.
    pub fn add(&mut self, diff: &Diff<'_>) -> bool {
        let mut changed = diff.full & !self.full != 0;
        for block in bits(diff.full & self.partial) {
            self.remove(block);
        }
        self.full |= diff.full;
        for (block, mask) in bits(diff.changed & !diff.full).zip(diff.masks()) {
            changed |= self.full >> block & 1 == 0 && self.add_mask(block, mask);
        }
        changed
    }

    fn add_mask(&mut self, block: usize, mask: u64) -> bool {
        let index = self.index(block);
        if self.partial >> block & 1 == 0 {
            self.partial |= 1 << block;
            self.masks.insert(index, mask);
            return true;
        }
        let before = self.masks[index];
        self.masks[index] |= mask;
        if self.masks[index] == u64::MAX {
            self.remove(block);
            self.full |= 1 << block;
        }
        before & mask != mask
    }

    fn remove(&mut self, block: usize) {
        self.masks.remove(self.index(block));
        self.partial &= !(1 << block);
    }

    /// The index of a block's mask in the list, or its insertion point.
    fn index(&self, block: usize) -> usize {
        (self.partial & ((1 << block) - 1)).count_ones() as usize
    }

    /// The number of stored masks.
    #[must_use]
    pub fn kept_masks(&self) -> usize {
        self.masks.len()
    }

    /// The blocks with changed bytes, one bit each.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.full | self.partial
    }

    /// For each block with changed bytes in ascending order, a bit for each byte.
    pub fn bytes(&self) -> impl Iterator<Item = u64> {
        let mut partial = self.masks.iter();
        bits(self.blocks()).map(move |block| {
            if self.full >> block & 1 == 1 { u64::MAX } else { partial.next().copied().unwrap_or(0) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_SIZE;
    use crate::diff::{BLOCK_BYTES, encode};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Runs of bytes to be written: where, how many, how far apart they are.
    fn writes() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
        vec((0..PAGE_SIZE, 0..700usize, 1..9usize), 0..5)
    }

    proptest! {
        #[test]
        fn the_union_of_diffs_is_the_bytes_that_differed(rounds in vec(writes(), 1..6)) {
            let mut page = [0u8; PAGE_SIZE];
            let mut written = [false; PAGE_SIZE];
            let mut footprint = Footprint::default();
            for writes in rounds {
                let twin = page;
                for (at, bytes, step) in writes {
                    (at..(at + bytes).min(PAGE_SIZE)).step_by(step).for_each(|at| page[at] = page[at].wrapping_add(1));
                }
                let news = (0..PAGE_SIZE).filter(|&at| page[at] != twin[at] && !written[at]).count();
                (0..PAGE_SIZE).for_each(|at| written[at] |= page[at] != twin[at]);
                let mut diff = vec![];
                if encode((&page).into(), &twin, &mut diff) > 0 {
                    prop_assert_eq!(footprint.add(&Diff::parse(&diff).unwrap()), news > 0);
                }
                let mut told = [false; PAGE_SIZE];
                for (block, mask) in bits(footprint.blocks()).zip(footprint.bytes()) {
                    prop_assert_ne!(mask, 0);
                    bits(mask).for_each(|byte| told[block * BLOCK_BYTES + byte] = true);
                }
                prop_assert!(told == written);
                prop_assert_eq!(footprint.bytes().count(), footprint.blocks().count_ones() as usize);
            }
        }
    }

    #[test]
    fn a_page_that_was_written_wholly_keeps_no_masks() {
        let mut footprint = Footprint::default();
        let twin = [0; PAGE_SIZE];
        for odd in [0, 1] {
            let page: [u8; PAGE_SIZE] = std::array::from_fn(|at| u8::from(at % 2 == odd));
            let mut diff = vec![];
            encode((&page).into(), &twin, &mut diff);
            assert!(footprint.add(&Diff::parse(&diff).unwrap()));
        }
        assert_eq!((footprint.blocks(), footprint.kept_masks()), (u64::MAX, 0));
    }
}
