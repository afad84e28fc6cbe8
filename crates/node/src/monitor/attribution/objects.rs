//! The blocks that this node has allocated: one word for each place where a block can begin.

use super::page_set::PageSet;
use super::places::{PAGE_WORDS, Place, Places, Zone};
use gondwana_memory::heap::Layout;
use gondwana_memory::{MemoryError, SparseWords};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bits of a word for the origin, counted from 1 so that no block is 0. Above them are two flags; the rest is the
/// length. For small blocks, which share a place, its upper bits are the block's position in the place.
const ORIGIN_BITS: u32 = 20;
const NEW: u64 = 1 << ORIGIN_BITS;
const MAPPING: u64 = 1 << (ORIGIN_BITS + 1);
const BYTES_SHIFT: u32 = ORIGIN_BITS + 2;
const SHARED_LENGTH_BITS: u32 = 31;

/// Origins have smaller numbers.
pub(super) const MOST_ORIGINS: usize = (1 << ORIGIN_BITS) - 1;

/// A block that was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// Its first address.
    pub address: usize,
    /// The length that the program requested, in bytes.
    pub bytes: usize,
    /// The number of its allocation site and thread.
    pub origin: u32,
    /// The block is a mapping of its own.
    pub mapping: bool,
}

impl Noted {
    fn pack(&self, place: &Place<'_>) -> u64 {
        let length = (self.bytes as u64).min(most_bytes(place.zone));
        ((place.skew as u64) << SHARED_LENGTH_BITS | length) << BYTES_SHIFT
            | if self.mapping { MAPPING } else { 0 }
            | u64::from(self.origin + 1)
    }

    fn unpack(zone: &Zone, place: usize, word: u64) -> Self {
        let (most, length) = (most_bytes(zone), word >> BYTES_SHIFT);
        Self {
            address: zone.address(place, to_usize((length & !most) >> SHARED_LENGTH_BITS)),
            bytes: to_usize(length & most),
            origin: (word & ((1 << ORIGIN_BITS) - 1)) as u32 - 1,
            mapping: word & MAPPING != 0,
        }
    }
}

/// The bits of the length field that hold a block's length in this zone. No part of the span has more than 2^42
/// bytes.
fn most_bytes(zone: &Zone) -> u64 {
    if zone.is_shared() { (1 << SHARED_LENGTH_BITS) - 1 } else { u64::MAX >> BYTES_SHIFT }
}

/// The blocks of this node's part of the span: the last one at each address, whether or not it was freed since.
///
/// A block that is allocated again as before changes nothing, so programs that allocate and free all the time have
/// nothing to emit. There is no memory besides the words, so nothing can overflow.
#[derive(Debug)]
pub(super) struct Objects {
    places: Places,
    words: SparseWords,
    /// Pages with words that are not 0.
    used: PageSet,
    /// Pages with words that are new.
    fresh: PageSet,
}

impl Objects {
    /// No blocks in this node's part of the heap.
    pub(super) fn new(layout: &Layout, node: NodeId) -> Result<Self, MemoryError> {
        let places = Places::new(layout, node);
        let pages = places.words() / PAGE_WORDS;
        Ok(Self {
            words: SparseWords::new(places.words())?,
            used: PageSet::new(pages)?,
            fresh: PageSet::new(pages)?,
            places,
        })
    }

    /// The addresses of this node's part.
    pub(super) fn part(&self) -> &Range<usize> {
        self.places.part()
    }

    /// Notes a block that the calling thread has just allocated; no other thread uses its memory yet. Ignores a block
    /// outside the part.
    pub(super) fn note(&self, block: &Noted) {
        let Some(place) = self.places.at(block.address) else { return };
        let (number, word) = (place.word, block.pack(&place));
        let before = self.words[number].load(Ordering::Relaxed);
        let hid_others = self.clear(self.places.hidden(&place, block.bytes));
        if before & !NEW == word && !hid_others {
            return;
        }
        self.words[number].store(word | NEW, Ordering::Relaxed);
        let page = number / PAGE_WORDS;
        // Only if the bit is not set: a locked write costs as much as all the rest.
        if before == 0 && !self.used.contains(page) {
            self.used.insert(page);
        }
        self.fresh.insert(page);
    }

    /// Clears some words; true if any of them held a block.
    fn clear(&self, range: Range<usize>) -> bool {
        if range.is_empty() {
            return false;
        }
        let mut found = false;
        let mut forget = |range: Range<usize>| {
            for words in self.words[range].chunks(8) {
                // Mostly the words are 0: one test for several of them.
                if words.iter().fold(0, |any, word| any | word.load(Ordering::Relaxed)) != 0 {
                    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                    found = true;
                }
            }
        };
        let whole = range.start.div_ceil(PAGE_WORDS)..range.end / PAGE_WORDS;
        let head = range.start..range.end.min(whole.start * PAGE_WORDS);
        let tail = range.start.max(whole.end * PAGE_WORDS)..range.end;
        for part in [head, tail].into_iter().filter(|part| !part.is_empty()) {
            if self.used.contains(part.start / PAGE_WORDS) {
                forget(part);
            }
            if whole.start > whole.end {
                // The range is within one page: head and tail are the same.
                return found;
            }
        }
        self.used.take(whole, |page| forget(words_of(page)));
        found
    }

    /// Calls a function with each block that is new, or differs from the last call, in ascending order of addresses.
    pub(super) fn drain(&self, mut call: impl FnMut(Noted)) {
        self.fresh.take(0..self.words.len() / PAGE_WORDS, |page| {
            let zone = self.places.zone_of(page);
            for (number, place) in words_of(page).zip(&self.words[words_of(page)]) {
                let word = place.load(Ordering::Relaxed);
                if word & NEW != 0 {
                    call(Noted::unpack(zone, number, word));
                    // If the word has changed meanwhile, the thread that changed it has inserted the page again.
                    let _ = place.compare_exchange(word, word & !NEW, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        });
    }

    /// Marks all blocks as new.
    pub(super) fn renew(&self) {
        self.used.visit(0..self.words.len() / PAGE_WORDS, |page| {
            let words = &self.words[words_of(page)];
            for word in words.iter().filter(|word| word.load(Ordering::Relaxed) != 0) {
                word.fetch_or(NEW, Ordering::Relaxed);
            }
            self.fresh.insert(page);
        });
    }

    /// The block that begins at an address.
    pub(super) fn at(&self, address: usize) -> Option<Noted> {
        let place = self.places.at(address)?;
        if !self.used.contains(place.word / PAGE_WORDS) {
            return None;
        }
        let word = self.words[place.word].load(Ordering::Relaxed);
        let block = (word != 0).then(|| Noted::unpack(place.zone, place.word, word))?;
        (block.address == address).then_some(block)
    }
}

/// The numbers of the words in a page.
fn words_of(page: usize) -> Range<usize> {
    page * PAGE_WORDS..(page + 1) * PAGE_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_memory::PAGE_SIZE;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BASE: usize = 0x1000_0000_0000;
    /// A region of 64 KiB for each of 72 sizes.
    const REGIONS: usize = 72 << 16;
    /// Where blocks of any size are, and how many bytes of that the tests use.
    const START: usize = BASE + REGIONS;
    const BYTES: usize = 64 * PAGE_SIZE;

    fn layout() -> Layout {
        let layout = Layout::new(BASE, 4 * REGIONS, 1);
        assert_eq!(layout.regions(NodeId(0)), Some((BASE..START, 16)));
        layout
    }

    fn objects() -> Objects {
        Objects::new(&layout(), NodeId(0)).unwrap()
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
        (0..BYTES / 16, bytes, 0..5u32).prop_map(|(grain, bytes, origin)| {
            let offset = grain * 16;
            noted(offset, bytes.min(BYTES - offset), origin)
        })
    }

    /// A block of one of some sizes, in its region.
    fn small_block() -> impl Strategy<Value = Noted> {
        let sizes: Vec<_> = (BASE..).step_by(1 << 16).zip(layout().block_sizes()).step_by(7).collect();
        (prop::sample::select(sizes), any::<prop::sample::Index>(), any::<usize>(), 0..5u32).prop_map(
            |((region, size), index, bytes, origin)| Noted {
                address: region + index.index((1 << 16) / size) * size,
                bytes: bytes % (size + 1),
                origin,
                mapping: false,
            },
        )
    }

    proptest! {
        /// Blocks that overlap stand for memory that was freed and used again.
        #[test]
        fn a_reader_knows_the_last_block_at_each_address(
            blocks in prop::collection::vec((prop_oneof![block(), small_block()], prop::bool::weighted(0.3)), 1..100)
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
            for address in (BASE..START + BYTES).step_by(16) {
                prop_assert_eq!(objects.at(address), model.get(&address).copied());
            }
        }
    }

    #[test]
    fn what_is_known_is_not_emitted_again() {
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
    fn a_large_block_is_emitted_again_when_it_hides_others() {
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
    fn all_that_is_known_can_be_emitted_again() {
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
        for address in [BASE - 16, BASE + 4 * REGIONS, START + 8, 0] {
            objects.note(&Noted { address, bytes: 64, origin: 1, mapping: false });
            assert_eq!(objects.at(address), None);
        }
        assert_eq!(drained(&objects), []);
    }

    #[test]
    fn blocks_of_many_threads_are_all_emitted() {
        let objects = objects();
        let each = BYTES / 16 / 4;
        let mut emitted = BTreeMap::new();
        let mut take = |block: Noted| {
            emitted.insert(block.address, block);
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u32)
                .map(|thread| {
                    let objects = &objects;
                    scope.spawn(move || {
                        for round in 1..=8 {
                            for grain in 0..each {
                                objects.note(&noted((grain * 4 + thread as usize) * 16, round, thread));
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
        assert_eq!(emitted.len(), 4 * each);
        assert!(emitted.values().all(|block| block.bytes == 8));
    }
}
