//! Pointers to allocated blocks in the program's variables, by which reports name the blocks.

use super::objects::Objects;
use gondwana_memory::heap::GRAIN;
use gondwana_memory::{PAGE_SIZE, Segment};
use gondwana_page::to_usize;
use gondwana_recording::Reference;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most pointers that are emitted.
const MOST: usize = 64 * 1024;

/// The smallest blocks whose pointers are emitted, in bytes: a program has many smaller ones, and mostly other blocks
/// point to them.
const LEAST_BYTES: usize = 64;

/// The pointers that were emitted, by their addresses.
#[derive(Debug, Default)]
pub(super) struct References {
    emitted: HashMap<u64, u64>,
    dropped: u64,
}

impl References {
    /// Searches variables from `address` on, and calls a function with each pointer that is new or has changed. A
    /// pointer into this node's part must point to the beginning of a block; this node does not know the blocks of
    /// other nodes.
    pub(super) fn look(
        &mut self,
        address: usize,
        words: &[AtomicU64],
        span: &Segment,
        objects: &Objects,
        mut emit: impl FnMut(Reference),
    ) {
        let span = span.base as u64..(span.base + span.pages as usize * PAGE_SIZE) as u64;
        for (index, word) in words.iter().enumerate() {
            let value = word.load(Ordering::Relaxed);
            if !span.contains(&value) || !begins_block(value, objects) {
                continue;
            }
            let address = (address + index * size_of::<u64>()) as u64;
            if self.emitted.get(&address) == Some(&value) {
                continue;
            }
            if self.emitted.len() >= MOST && !self.emitted.contains_key(&address) {
                self.dropped += 1;
                continue;
            }
            self.emitted.insert(address, value);
            emit(Reference { address, value });
        }
    }

    /// The number of pointers that were dropped because there are too many.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// True if a block of sufficient size begins at an address of the span, or may begin there on another node.
fn begins_block(value: u64, objects: &Objects) -> bool {
    let address = to_usize(value);
    if !objects.part().contains(&address) {
        return address.is_multiple_of(GRAIN);
    }
    objects.at(address).is_some_and(|block| block.bytes >= LEAST_BYTES || block.mapping)
}

/// The progress of a search through many pages: a part of them at a time, so that no thread waits long for the node's
/// lock.
#[derive(Debug, Default)]
pub(super) struct Round {
    next: u32,
}

impl Round {
    /// The next pages of a segment, at most `most`. Empty when the round is over; the next call begins another round.
    pub(super) fn next(&mut self, pages: Range<u32>, most: u32) -> Range<u32> {
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
    fn pointers_to_blocks_are_emitted_once() {
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
            let mut emitted = vec![];
            references.look(0x4000, &words, &span, &objects, |reference| {
                emitted.push((reference.address, reference.value))
            });
            emitted
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
