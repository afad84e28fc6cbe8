//! Pointers to allocated blocks in the variables of the program: by them people know the blocks.

use super::objects::Objects;
use gondwana_memory::heap::GRAIN;
use gondwana_memory::{PAGE_SIZE, Segment};
use gondwana_recording::Reference;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most pointers that are told.
const MOST: usize = 64 * 1024;

/// The smallest blocks that a pointer is told of, in bytes: of small ones a program has many, and what points to them is
/// mostly another block.
const LEAST_BYTES: usize = 64;

/// The pointers that were told, by their addresses.
#[derive(Debug, Default)]
pub struct References {
    told: HashMap<u64, u64>,
    dropped: u64,
}

impl References {
    /// Looks for pointers in variables from `address` on and calls a function with each that was not told, or pointed
    /// elsewhere then. A pointer to this node's blocks points to the beginning of one; of other nodes' nothing is known.
    pub fn look(
        &mut self,
        address: usize,
        words: &[AtomicU64],
        span: &Segment,
        objects: &Objects,
        mut tell: impl FnMut(Reference),
    ) {
        let span = span.base as u64..(span.base + span.pages as usize * PAGE_SIZE) as u64;
        for (index, word) in words.iter().enumerate() {
            let value = word.load(Ordering::Relaxed);
            if !span.contains(&value) || !begins_block(value, objects) {
                continue;
            }
            let address = (address + index * size_of::<u64>()) as u64;
            if self.told.get(&address) == Some(&value) {
                continue;
            }
            if self.told.len() >= MOST && !self.told.contains_key(&address) {
                self.dropped += 1;
                continue;
            }
            self.told.insert(address, value);
            tell(Reference { address, value });
        }
    }

    /// How many pointers were found that are not told because there are too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// True if a block that is worth telling begins at an address of the span, or may do so on another node.
fn begins_block(value: u64, objects: &Objects) -> bool {
    if !objects.part().contains(&(value as usize)) {
        return value.is_multiple_of(GRAIN as u64);
    }
    objects.at(value as usize).is_some_and(|block| block.bytes >= LEAST_BYTES || block.mapping)
}

/// Where looking through many pages goes on: a part of them at a time, so that nobody waits for long.
#[derive(Debug, Default)]
pub struct Round {
    next: u32,
}

impl Round {
    /// The next pages, at most so many, of a segment; empty when the round is over, and the next call begins another.
    pub fn next(&mut self, pages: Range<u32>, most: u32) -> Range<u32> {
        let start = self.next.max(pages.start);
        let end = start.saturating_add(most).min(pages.end);
        if start >= end {
            self.next = 0;
            return 0..0;
        }
        self.next = end;
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::attribution::objects::Noted;
    use gondwana_memory::heap::Layout;
    use gondwana_topology::NodeId;

    #[test]
    fn pointers_to_blocks_are_told_once() {
        let span = Segment { base: 0x1000_0000_0000, pages: 512, first: 0 };
        let objects = Objects::new(&Layout::new(span.base, 256 * PAGE_SIZE, 2), NodeId(0)).unwrap();
        let block =
            |offset: usize, bytes, mapping| Noted { address: span.base + offset, bytes, origin: 0, mapping };
        for block in [block(0, 64, false), block(64, 32, false), block(PAGE_SIZE, 1, true)] {
            objects.note(&block);
        }
        let at = |offset: usize| (span.base + offset) as u64;
        let elsewhere = at(300 * PAGE_SIZE);
        let values = [at(0), at(64), at(PAGE_SIZE), at(16), 7, elsewhere, elsewhere + 8, at(512 * PAGE_SIZE)];
        let words = values.map(AtomicU64::new);
        let mut references = References::default();
        let mut look = || {
            let mut told = vec![];
            references.look(0x4000, &words, &span, &objects, |reference| {
                told.push((reference.address, reference.value))
            });
            told
        };
        assert_eq!(look(), [(0x4000, at(0)), (0x4010, at(PAGE_SIZE)), (0x4028, elsewhere)]);
        assert_eq!(look(), []);
        words[0].store(at(PAGE_SIZE), Ordering::Relaxed);
        assert_eq!(look(), [(0x4000, at(PAGE_SIZE))]);
    }

    #[test]
    fn a_round_goes_through_all_pages_in_parts() {
        let mut round = Round::default();
        for _ in 0..2 {
            assert_eq!([(); 4].map(|()| round.next(10..15, 2)), [10..12, 12..14, 14..15, 0..0]);
        }
        assert_eq!(round.next(3..3, 2), 0..0);
    }
}
