//! Which blocks this node has allocated: a word for each place where one can begin.

use super::page_set::PageSet;
use gondwana_memory::{MemoryError, PAGE_SIZE, SparseWords};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Blocks begin at multiples of this many bytes.
const GRAIN: usize = 16;
/// Such places in a page.
const GRAINS: usize = PAGE_SIZE / GRAIN;

/// Bits of a word for who has allocated, counted from 1 so that no block is 0; above them are two flags, and the rest is
/// the length.
const ORIGIN_BITS: u32 = 20;
const NEW: u64 = 1 << ORIGIN_BITS;
const MAPPING: u64 = 1 << (ORIGIN_BITS + 1);
const BYTES_SHIFT: u32 = ORIGIN_BITS + 2;

/// Origins have smaller numbers.
pub const MOST_ORIGINS: usize = (1 << ORIGIN_BITS) - 1;

/// A block that was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Its first address.
    pub address: usize,
    /// How many bytes the program has asked for.
    pub bytes: usize,
    /// Who has allocated it.
    pub origin: u32,
    /// It is a mapping of its own.
    pub mapping: bool,
}

impl Noted {
    fn pack(&self) -> u64 {
        // No part of the span has more than 2^42 bytes.
        (self.bytes as u64) << BYTES_SHIFT
            | if self.mapping { MAPPING } else { 0 }
            | u64::from(self.origin + 1)
    }

    fn unpack(address: usize, word: u64) -> Self {
        let origin = (word & ((1 << ORIGIN_BITS) - 1)) as u32 - 1;
        Self { address, bytes: (word >> BYTES_SHIFT) as usize, origin, mapping: word & MAPPING != 0 }
    }
}

/// The blocks of this node's part of the span: the last one at each address, whether or not it was freed since.
///
/// A block that is allocated as before is known already, so programs that allocate and free all the time have nothing
/// to tell. Nothing is kept besides the words, so nothing can overflow.
#[derive(Debug)]
pub struct Objects {
    part: Range<usize>,
    words: SparseWords,
    /// Pages with words that are not 0.
    used: PageSet,
    /// Pages with words that are new.
    fresh: PageSet,
}

impl Objects {
    /// No blocks in this part of the span yet.
    pub fn new(part: Range<usize>) -> Result<Self, MemoryError> {
        let pages = part.len().div_ceil(PAGE_SIZE);
        Ok(Self {
            words: SparseWords::new(pages * GRAINS)?,
            used: PageSet::new(pages)?,
            fresh: PageSet::new(pages)?,
            part,
        })
    }

    /// The addresses of this node's part.
    pub fn part(&self) -> &Range<usize> {
        &self.part
    }

    /// Takes down a block that was allocated just now, so that nobody else is doing anything with its memory. One that is
    /// outside the part is left out.
    pub fn note(&self, block: &Noted) {
        let Some(grain) = self.grain(block.address) else { return };
        let page = grain / GRAINS;
        if !self.used.has_near(page) {
            // Blocks follow each other: who has one here will have others.
            let near = PageSet::near(page);
            self.words.provide(near.start * GRAINS..(near.end * GRAINS).min(self.words.len()));
        }
        let word = block.pack();
        let before = self.words[grain].load(Ordering::Relaxed);
        let end = (grain + block.bytes.div_ceil(GRAIN)).min(self.words.len());
        let hid_others = self.clear(grain + 1..end);
        if before & !NEW == word && !hid_others {
            return;
        }
        self.words[grain].store(word | NEW, Ordering::Relaxed);
        // A write that all processors agree on costs as much as all the rest.
        if before == 0 && !self.used.contains(page) {
            self.used.insert(page);
        }
        self.fresh.insert(page);
    }

    /// Forgets the blocks that begin in a range of grains; true if there were any.
    fn clear(&self, grains: Range<usize>) -> bool {
        if grains.is_empty() {
            return false;
        }
        let mut found = false;
        let mut forget = |grains: Range<usize>| {
            for words in self.words[grains].chunks(8) {
                // Mostly there is nothing: one test for several words.
                if words.iter().fold(0, |any, word| any | word.load(Ordering::Relaxed)) != 0 {
                    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                    found = true;
                }
            }
        };
        let whole = grains.start.div_ceil(GRAINS)..grains.end / GRAINS;
        let head = grains.start..grains.end.min(whole.start * GRAINS);
        let tail = grains.start.max(whole.end * GRAINS)..grains.end;
        for part in [head, tail].into_iter().filter(|part| !part.is_empty()) {
            if self.used.contains(part.start / GRAINS) {
                forget(part);
            }
            if whole.start > whole.end {
                // All of it is within one page: head and tail are the same.
                return found;
            }
        }
        self.used.take(whole, |page| forget(page * GRAINS..(page + 1) * GRAINS));
        found
    }

    /// Calls a function with each block that is new or other than it was at the last call, in ascending order of addresses.
    pub fn drain(&self, mut call: impl FnMut(Noted)) {
        self.fresh.take(0..self.words.len() / GRAINS, |page| {
            for (index, place) in self.words[page * GRAINS..(page + 1) * GRAINS].iter().enumerate() {
                let word = place.load(Ordering::Relaxed);
                if word & NEW != 0 {
                    call(Noted::unpack(self.part.start + (page * GRAINS + index) * GRAIN, word));
                    // If it is another block meanwhile, whoever allocated that has put the page in again.
                    let _ = place.compare_exchange(word, word & !NEW, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        });
    }

    /// All blocks are new again.
    pub fn renew(&self) {
        self.used.visit(0..self.words.len() / GRAINS, |page| {
            let words = &self.words[page * GRAINS..(page + 1) * GRAINS];
            for word in words.iter().filter(|word| word.load(Ordering::Relaxed) != 0) {
                word.fetch_or(NEW, Ordering::Relaxed);
            }
            self.fresh.insert(page);
        });
    }

    /// The block that begins at an address.
    pub fn at(&self, address: usize) -> Option<Noted> {
        let grain = self.grain(address)?;
        if !self.used.contains(grain / GRAINS) {
            return None;
        }
        let word = self.words[grain].load(Ordering::Relaxed);
        (word != 0).then(|| Noted::unpack(address, word))
    }

    fn grain(&self, address: usize) -> Option<usize> {
        (self.part.contains(&address) && address.is_multiple_of(GRAIN))
            .then(|| (address - self.part.start) / GRAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const START: usize = 0x1000_0000_0000;
    const BYTES: usize = 64 * PAGE_SIZE;

    fn objects() -> Objects {
        Objects::new(START..START + BYTES).unwrap()
    }

    fn noted(offset: usize, bytes: usize, origin: u32) -> Noted {
        Noted {
            address: START + offset,
            bytes,
            origin,
            mapping: bytes > PAGE_SIZE && origin.is_multiple_of(2),
        }
    }

    fn drained(objects: &Objects) -> Vec<Noted> {
        let mut all = vec![];
        objects.drain(|block| all.push(block));
        all
    }

    /// What a reader of the recording has: the last of the blocks that hold an address.
    #[derive(Default)]
    struct Reader(Vec<Noted>);

    impl Reader {
        fn block_at(&self, address: usize) -> Option<Noted> {
            let holds =
                |block: &&Noted| (block.address..block.address + block.bytes.max(1)).contains(&address);
            self.0.iter().rev().find(holds).copied()
        }
    }

    fn block() -> impl Strategy<Value = Noted> {
        let bytes = prop_oneof![0..200usize, 4000..4200usize, 0..20 * PAGE_SIZE];
        (0..BYTES / GRAIN, bytes, 0..5u32).prop_map(|(grain, bytes, origin)| {
            let offset = grain * GRAIN;
            noted(offset, bytes.min(BYTES - offset), origin)
        })
    }

    proptest! {
        /// Blocks that overlap stand for memory that was freed and used again.
        #[test]
        fn a_reader_knows_the_last_block_at_each_address(
            blocks in prop::collection::vec((block(), prop::bool::weighted(0.3)), 1..60)
        ) {
            let objects = objects();
            let mut reader = Reader::default();
            let mut model: BTreeMap<usize, Noted> = BTreeMap::new();
            for (block, drain) in blocks {
                objects.note(&block);
                let end = block.address + block.bytes.max(1);
                model.retain(|&start, _| start < block.address || start >= end);
                model.insert(block.address, block);
                if drain {
                    reader.0.extend(drained(&objects));
                }
            }
            reader.0.extend(drained(&objects));
            prop_assert_eq!(drained(&objects), vec![]);
            for block in model.values() {
                prop_assert_eq!(objects.at(block.address), Some(*block));
                prop_assert_eq!(reader.block_at(block.address), Some(*block));
            }
            for grain in (START..START + BYTES).step_by(GRAIN) {
                prop_assert_eq!(objects.at(grain), model.get(&grain).copied());
            }
        }
    }

    #[test]
    fn what_is_known_is_not_told_again() {
        let objects = objects();
        let (small, large) = (noted(32, 24, 1), noted(PAGE_SIZE, 5 * PAGE_SIZE, 2));
        for _ in 0..3 {
            objects.note(&small);
            objects.note(&large);
        }
        assert_eq!(drained(&objects), [small, large]);
        objects.note(&small);
        objects.note(&large);
        assert_eq!(drained(&objects), []);
        objects.note(&noted(32, 25, 1));
        assert_eq!(drained(&objects), [noted(32, 25, 1)]);
    }

    #[test]
    fn a_large_block_is_told_again_when_it_hides_others() {
        let objects = objects();
        let (large, inner) = (noted(0, 3 * PAGE_SIZE, 1), noted(PAGE_SIZE + 64, 100, 2));
        objects.note(&large);
        drained(&objects);
        objects.note(&inner);
        drained(&objects);
        objects.note(&large);
        assert_eq!(drained(&objects), [large]);
        assert_eq!(objects.at(inner.address), None);
    }

    #[test]
    fn all_that_is_known_can_be_told_again() {
        let objects = objects();
        let blocks = [noted(32, 24, 1), noted(PAGE_SIZE, 5 * PAGE_SIZE, 2), noted(60 * PAGE_SIZE, 1, 3)];
        blocks.iter().for_each(|block| objects.note(block));
        assert_eq!(drained(&objects), blocks);
        objects.renew();
        assert_eq!(drained(&objects), blocks);
        assert_eq!(drained(&objects), []);
    }

    #[test]
    fn blocks_elsewhere_are_left_out() {
        let objects = objects();
        for address in [START - 16, START + BYTES, START + 8, 0] {
            objects.note(&Noted { address, bytes: 64, origin: 1, mapping: false });
            assert_eq!(objects.at(address), None);
        }
        assert_eq!(drained(&objects), []);
    }

    #[test]
    fn blocks_of_many_threads_are_all_told() {
        let objects = objects();
        let each = BYTES / GRAIN / 4;
        let mut told = BTreeMap::new();
        let mut take = |block: Noted| {
            told.insert(block.address, block);
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let objects = &objects;
                    scope.spawn(move || {
                        for round in 1..=8 {
                            for grain in 0..each {
                                objects.note(&noted((grain * 4 + thread) * GRAIN, round, thread as u32));
                            }
                        }
                    })
                })
                .collect();
            while !threads.iter().all(|thread| thread.is_finished()) {
                objects.drain(&mut take);
            }
        });
        objects.drain(&mut take);
        assert_eq!(told.len(), 4 * each);
        assert!(told.values().all(|block| block.bytes == 8));
    }
}
