//! Written bytes in a file: packed, and the same when they are read.

use gondwana_recording::{LAUNCHER, RunRecord, WrittenRecord, encode, read};
use proptest::prelude::*;

/// A recording with one record.
fn file(written: &WrittenRecord) -> Vec<u8> {
    let run = RunRecord { nodes: 1, page_bytes: 4096, ..RunRecord::default() };
    let records = vec![written.clone()];
    [&gondwana_recording::FILE_HEADER[..], &encode(LAUNCHER, &run), &encode(0, &records)].concat()
}

fn written() -> impl Strategy<Value = WrittenRecord> {
    let mask = prop_oneof![Just(u64::MAX), 1..=u64::MAX];
    (0..1_u64 << 40, prop::collection::btree_map(0..64u32, mask, 0..=64)).prop_map(|(page, masks)| {
        WrittenRecord {
            address: page * 4096,
            blocks: masks.keys().fold(0, |blocks, block| blocks | 1 << block),
            bytes: masks.into_values().collect(),
        }
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(written in written()) {
        let recording = read(&file(&written)[..]).unwrap();
        prop_assert_eq!(recording.cut, None);
        prop_assert_eq!(recording.written, [(0, written)]);
    }

    #[test]
    fn each_block_that_is_read_has_a_mask(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // Whatever the contents of the chunk are, with the right sum.
        bytes.insert(0, 1);
        let mut chunk = encode(0, &vec![WrittenRecord::default()]);
        chunk.truncate(12);
        chunk.extend_from_slice(&bytes);
        let length = u32::try_from(bytes.len()).unwrap();
        chunk[..4].copy_from_slice(&length.to_le_bytes());
        let sum = crc32fast::hash(&chunk[8..]);
        chunk[4..8].copy_from_slice(&sum.to_le_bytes());
        let run = RunRecord { nodes: 1, page_bytes: 4096, ..RunRecord::default() };
        let file = [&gondwana_recording::FILE_HEADER[..], &encode(LAUNCHER, &run), &chunk].concat();
        for (_, written) in read(&file[..]).unwrap().written {
            prop_assert_eq!(written.bytes.len(), written.blocks.count_ones() as usize);
        }
    }
}

#[test]
fn a_page_that_was_written_wholly_takes_few_bytes() {
    let page = WrittenRecord { address: 0x1000_0000_0000, blocks: u64::MAX, bytes: vec![u64::MAX; 64] };
    let nothing = WrittenRecord { address: page.address, ..WrittenRecord::default() };
    assert!(file(&page).len() < file(&nothing).len() + 24);
}
