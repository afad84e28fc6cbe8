//! The words of a table that blocks have: about one word for each block, wherever the sizes of blocks are known.

use gondwana_memory::PAGE_SIZE;
use gondwana_memory::heap::{GRAIN, Layout};
use gondwana_topology::NodeId;
use std::ops::Range;

const GRAIN_SHIFT: u32 = GRAIN.trailing_zeros();

/// Words in a page of the table. Those of different zones are in different pages.
pub(super) const PAGE_WORDS: usize = PAGE_SIZE / size_of::<u64>();

/// Addresses with a constant number of bytes for each word.
#[derive(Debug)]
pub(super) struct Zone {
    /// The first address.
    start: usize,
    /// The number of its word.
    first: usize,
    /// log2 of the bytes that share a word.
    shift: u32,
}

impl Zone {
    /// True if addresses where a block can begin share a word, of which one at a time has a block.
    pub(super) fn is_shared(&self) -> bool {
        self.shift > GRAIN_SHIFT
    }

    /// The address of a word, at this skew.
    pub(super) fn address(&self, word: usize, skew: usize) -> usize {
        self.start + ((word - self.first) << self.shift) + skew * GRAIN
    }

    fn word(&self, address: usize) -> usize {
        self.first + ((address - self.start) >> self.shift)
    }
}

/// Where a block begins.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// Where the address is.
    pub zone: &'a Zone,
    /// The number of its word.
    pub word: usize,
    /// The distance from the first address of the word, in multiples of [`GRAIN`].
    pub skew: usize,
}

/// Maps addresses of a node's part of the heap to words of a table.
///
/// Small blocks of one size have a region of their own, and are never closer to each other than their length: one
/// word suffices for as many bytes as the greatest power of two that is not longer. Elsewhere a block can begin at
/// any multiple of [`GRAIN`].
#[derive(Debug)]
pub(super) struct Places {
    part: Range<usize>,
    /// One for each region, in the order of addresses, and one for the addresses after the last region.
    zones: Box<[Zone]>,
    /// log2 of the bytes in a region.
    region_shift: u32,
    words: usize,
}

impl Places {
    /// Of this node's part.
    pub(super) fn new(layout: &Layout, node: NodeId) -> Self {
        let start = layout.part(node);
        let part = start..start + layout.bytes_per_node();
        let (regions, region_shift) = layout.regions(node).unwrap_or((start..start, 0));
        let starts = regions.clone().step_by(1 << region_shift);
        let sized = starts.zip(layout.block_sizes().map(usize::ilog2));
        let mut words = 0;
        let zones = sized.chain([(regions.end, GRAIN_SHIFT)]).map(|(start, shift)| {
            let bytes = if start < regions.end { 1 << region_shift } else { part.end - start };
            let first = words;
            words += (bytes >> shift).next_multiple_of(PAGE_WORDS);
            Zone { start, first, shift }
        });
        Self { zones: zones.collect(), part, region_shift, words }
    }

    /// The addresses of the part.
    pub(super) fn part(&self) -> &Range<usize> {
        &self.part
    }

    /// How many words the table has: a multiple of [`PAGE_WORDS`].
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The place at an address, if it is in the part and a block can begin there.
    pub(super) fn at(&self, address: usize) -> Option<Place<'_>> {
        if !self.part.contains(&address) || !address.is_multiple_of(GRAIN) {
            return None;
        }
        let region = (address - self.part.start) >> self.region_shift;
        let zone = &self.zones[region.min(self.zones.len() - 1)];
        let word = zone.word(address);
        Some(Place { zone, word, skew: (address - zone.address(word, 0)) / GRAIN })
    }

    /// The words, other than that of `place`, of blocks that a block of this many bytes overlaps. In a region there
    /// are none.
    pub(super) fn hidden(&self, place: &Place<'_>, bytes: usize) -> Range<usize> {
        if self.rest().first > place.word {
            return 0..0;
        }
        let end = place.word + bytes.div_ceil(GRAIN);
        place.word + 1..end.min(self.rest().word(self.part.end))
    }

    /// The zone that the words of a page are for.
    pub(super) fn zone_of(&self, page: usize) -> &Zone {
        &self.zones[self.zones.partition_point(|zone| zone.first <= page * PAGE_WORDS) - 1]
    }

    fn rest(&self) -> &Zone {
        &self.zones[self.zones.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: usize = 0x1000_0000_0000;

    fn check(bytes: usize, zones: usize) {
        let layout = Layout::new(BASE, bytes, 2);
        let places = Places::new(&layout, NodeId(1));
        assert_eq!((places.zones.len(), places.part()), (zones, &(BASE + bytes..BASE + 2 * bytes)));
        let mut last = 0;
        for address in places.part().clone().step_by(GRAIN) {
            let place = places.at(address).unwrap();
            assert!((last..places.words()).contains(&place.word), "{place:?} after {last}");
            assert_eq!(place.zone.address(place.word, place.skew), address);
            assert!(place.skew == 0 || place.zone.is_shared());
            assert_eq!(places.zone_of(place.word / PAGE_WORDS).start, place.zone.start);
            last = place.word;
        }
        for nowhere in [BASE, BASE + bytes - GRAIN, BASE + bytes + 8, BASE + 2 * bytes] {
            assert!(places.at(nowhere).is_none());
        }
    }

    #[test]
    fn every_address_has_a_word() {
        let sizes = Layout::new(BASE, 32 << 20, 1).block_sizes().count();
        check(32 << 20, sizes + 1);
        check(1 << 20, 1);
    }

    #[test]
    fn blocks_of_a_region_have_a_word_each() {
        let layout = Layout::new(BASE, 32 << 20, 1);
        let places = Places::new(&layout, NodeId(0));
        let (regions, shift) = layout.regions(NodeId(0)).unwrap();
        for (start, size) in regions.step_by(1 << shift).zip(layout.block_sizes()) {
            let blocks = (start..start + (1 << shift) - size + 1).step_by(size);
            let words: Vec<_> = blocks.map(|address| places.at(address).unwrap().word).collect();
            assert!(words.is_sorted_by(|one, next| one < next), "{size}");
            assert!(words[words.len() - 1] - words[0] < 2 * words.len(), "{size}");
        }
    }

    #[test]
    fn what_a_large_block_hides_is_behind_it() {
        let places = Places::new(&Layout::new(BASE, 1 << 20, 1), NodeId(0));
        let hidden = |offset, bytes| {
            let place = places.at(BASE + offset).unwrap();
            places.hidden(&place, bytes)
        };
        assert!(hidden(0, 0).is_empty() && hidden(0, 16).is_empty());
        assert_eq!(hidden(32, 33), 3..5);
        assert_eq!(hidden((1 << 20) - 32, 1 << 30), (1 << 16) - 1..1 << 16);
        let with_regions = Places::new(&Layout::new(BASE, 32 << 20, 1), NodeId(0));
        let small = with_regions.at(BASE).unwrap();
        assert!(with_regions.hidden(&small, 1 << 20).is_empty());
    }
}
