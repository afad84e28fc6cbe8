//! Blocks that are alike in a file: few bytes, and the same when they are read.

use gondwana_recording::{
    BlockRecord, BlockSeries, FILE_HEADER, LAUNCHER, Recording, RunRecord, encode, read,
};
use proptest::prelude::*;

/// A recording with the blocks.
fn file(objects: &[BlockRecord]) -> Vec<u8> {
    let run = RunRecord { nodes: 1, page_bytes: 4096, ..RunRecord::default() };
    let alike = BlockSeries::gather(objects.iter().copied());
    [&FILE_HEADER[..], &encode(LAUNCHER, &run), &encode(0, &alike)].concat()
}

fn objects(recording: Recording) -> Vec<BlockRecord> {
    let mut objects: Vec<_> = recording.objects.into_iter().map(|(_, object)| object).collect();
    objects.sort_unstable_by_key(|object| object.address);
    objects
}

/// Blocks of some kinds, close together or far apart, at multiples of 16 or, which no heap does, elsewhere.
fn blocks() -> impl Strategy<Value = Vec<BlockRecord>> {
    let distance = prop_oneof![8 => (1..100_u64).prop_map(|grains| grains * 16), 1 => 1..1_u64 << 40];
    prop::collection::vec((distance, 1..4_u64, 1..4_u32, 0..2_u32), 0..200).prop_map(|blocks| {
        let mut address = 0x1000_0000_0000;
        let place = |(distance, bytes, site, thread)| {
            address += distance;
            BlockRecord { address, bytes, site, thread }
        };
        blocks.into_iter().map(place).collect()
    })
}

proptest! {
    #[test]
    fn what_was_allocated_is_read(blocks in blocks()) {
        let recording = read(&file(&blocks)[..]).unwrap();
        prop_assert!(recording.cut.is_none());
        prop_assert_eq!(objects(recording), blocks);
    }
}

#[test]
fn blocks_that_are_allocated_by_turns_take_a_byte_each() {
    let block = |number: u64| BlockRecord {
        address: 0x1000_0000_0000 + number * 160,
        bytes: 150 + number % 3,
        site: 1 + (number % 3) as u32,
        thread: 0,
    };
    let blocks: Vec<_> = (0..3000).map(block).collect();
    assert!(file(&blocks).len() < file(&blocks[..3]).len() + 3000 + 10);
    assert_eq!(objects(read(&file(&blocks)[..]).unwrap()), blocks);
}

#[test]
fn blocks_in_no_order_are_told_one_by_one() {
    let blocks: Vec<_> = [3, 2, 2, 1]
        .map(|place| BlockRecord { address: place * 0x1000, bytes: 8, ..BlockRecord::default() })
        .into();
    assert_eq!(
        BlockSeries::gather(blocks.clone()).iter().flat_map(BlockSeries::objects).collect::<Vec<_>>(),
        blocks
    );
}
