//! The bytes that each node has written.

use crate::range_set::RangeSet;
use gondwana_page::PAGE_BITS;
use gondwana_recording::{Recording, WrittenRecord};
use std::collections::HashMap;
use std::ops::Range;

/// log2 of the bytes that one record is about: a page, 64 blocks of 64 bytes.
const RECORD: u8 = PAGE_BITS;

/// The written bytes of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    pages: HashMap<(u16, u64), RangeSet>,
}

impl Writes {
    /// Collects the records; of several about one page of a node the last counts.
    pub(crate) fn of(recording: &Recording, nodes: usize) -> Self {
        let known = recording.written.iter().filter(|(node, _)| usize::from(*node) < nodes);
        let pages = known.map(|(node, written)| ((*node, written.address >> RECORD), bytes(written)));
        Self { pages: pages.collect() }
    }

    /// The bytes that a node has written of the page at this address.
    pub(crate) fn by(&self, node: u16, address: u64) -> Option<&RangeSet> {
        self.pages.get(&(node, address >> RECORD)).filter(|span| !span.is_empty())
    }

    /// All pages of which a node has written bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &RangeSet)> {
        self.pages.iter().map(|((node, _), span)| (*node, span))
    }

    /// The whole pages.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Range<u64>> {
        self.pages.keys().map(|(_, page)| page << RECORD..(page << RECORD).saturating_add(1 << RECORD))
    }
}

/// The bytes of one record.
fn bytes(written: &WrittenRecord) -> RangeSet {
    let page = written.address >> RECORD << RECORD;
    let blocks = (0..64_u64).filter(|block| written.blocks >> block & 1 == 1);
    let ranges = blocks.zip(&written.bytes).flat_map(|(block, &bits)| {
        let set = (0..64_u64).filter(move |bit| bits >> bit & 1 == 1);
        set.map(move |bit| {
            let address = page + block * 64 + bit;
            address..address.saturating_add(1)
        })
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_bytes_and_the_last_record_counts() {
        let record = |blocks, bytes: &[u64]| WrittenRecord { address: 0x7000, blocks, bytes: bytes.to_vec() };
        let recording = Recording {
            written: vec![(1, record(1, &[1])), (1, record(0b101, &[0b110, 1 << 63])), (9, record(1, &[1]))],
            ..Recording::default()
        };
        let writes = Writes::of(&recording, 2);
        assert_eq!(writes.by(1, 0x7fff).unwrap().ranges(), [0x7001..0x7003, 0x70bf..0x70c0]);
        assert_eq!(writes.by(0, 0x7000), None);
        assert!(writes.pages().eq(std::iter::once(0x7000..0x8000)));
    }
}
