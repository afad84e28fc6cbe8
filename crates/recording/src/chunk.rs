//! The file: a header, then chunks.
//!
//! A chunk begins with little-endian numbers of 4, 4, 2 and 2 bytes: the length of its contents, the CRC-32 of
//! everything behind that field, the kind of record, and the node. The contents follow in postcard's encoding.

use crate::{
    BankRecord, BlockRecord, BlockSeries, ConstructRecord, End, HomeRecord, ImageRecord, Interval, Name,
    Omitted, Reference, RetiredFilterRecord, RunRecord, SegmentRecord, SiteRecord, Started, Stretches,
    ThreadRecord, TotalsRecord, WrittenRecord,
};
use crc::{CRC_32_ISO_HDLC, Crc, Table};
use serde::Serialize;

/// The version of the format. It changes only when old readers cannot interpret new files; new kinds of records,
/// which readers skip, leave it as it is.
pub const FORMAT: u16 = 1;

/// The header of each file.
pub const FILE_HEADER: [u8; 16] = {
    let mut header = *b"gondwana-rec\n\0\0\n";
    header[13] = FORMAT.to_le_bytes()[0];
    header[14] = FORMAT.to_le_bytes()[1];
    header
};

/// The longest contents of a chunk, in bytes.
pub const MAX_CHUNK: usize = 16 << 20;

/// Bytes before the contents of a chunk.
pub(crate) const CHUNK_HEADER: usize = 12;

/// The checksum, computed with tables. The crate would have to ask the processor for its instructions, which traps in
/// a virtual machine: 60 us, more than all checksums of a short run.
pub(crate) static SUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// The contents of a chunk.
pub trait Record: Serialize {
    /// The number of its kind.
    const KIND: u16;
}

macro_rules! records {
    ($($kind:literal => $record:ty;)*) => {
        /// The numbers of all kinds that this version knows.
        pub(crate) const KINDS: &[u16] = &[$($kind),*];
        $(
            impl Record for $record {
                const KIND: u16 = $kind;
            }
        )*
    };
}

records! {
    1 => RunRecord;
    2 => Started;
    3 => Vec<ThreadRecord>;
    4 => Vec<SiteRecord>;
    5 => Vec<BlockRecord>;
    6 => Interval;
    7 => Vec<WrittenRecord>;
    8 => Vec<Reference>;
    9 => BankRecord;
    10 => End;
    11 => Vec<SegmentRecord>;
    12 => Vec<ImageRecord>;
    13 => Omitted;
    14 => TotalsRecord;
    15 => Vec<Name>;
    16 => RetiredFilterRecord;
    17 => Stretches;
    18 => Vec<BlockSeries>;
    19 => Vec<ConstructRecord>;
    20 => Vec<HomeRecord>;
}

/// Encodes a record of a node (or of [`crate::LAUNCHER`]) as a chunk.
///
/// # Panics
/// If the record takes more than [`MAX_CHUNK`] bytes: the recorder splits long lists.
#[must_use]
pub fn encode<R: Record>(node: u16, record: &R) -> Vec<u8> {
    let mut chunk = vec![0; CHUNK_HEADER];
    chunk[8..10].copy_from_slice(&R::KIND.to_le_bytes());
    chunk[10..12].copy_from_slice(&node.to_le_bytes());
    let mut chunk = postcard::to_extend(record, chunk).expect("records can be encoded");
    let length = chunk.len() - CHUNK_HEADER;
    assert!(length <= MAX_CHUNK, "a record of {length} bytes");
    let check = SUM.checksum(&chunk[8..]);
    let length = u32::try_from(length).expect("not above the maximum");
    chunk[..4].copy_from_slice(&length.to_le_bytes());
    chunk[4..8].copy_from_slice(&check.to_le_bytes());
    chunk
}

/// The chunks in `bytes`, one by one. An incomplete chunk at the end comes last.
pub fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = match bytes.first_chunk() {
            Some(&length) => CHUNK_HEADER.saturating_add(u32::from_le_bytes(length) as usize),
            None => bytes.len(),
        };
        let (chunk, rest) = bytes.split_at(length.min(bytes.len()));
        bytes = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The kind and the node of a chunk made by [`encode`]; `None` if it is too short.
#[must_use]
pub fn kind_and_node(chunk: &[u8]) -> Option<(u16, u16)> {
    let half = |from: usize| Some(u16::from_le_bytes(chunk.get(from..from + 2)?.try_into().ok()?));
    Some((half(8)?, half(10)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_behind_each_other_come_one_by_one() {
        let name = |name: &str| vec![Name { start: 1, end: 2, name: name.to_owned() }];
        let made = [encode(0, &name("a")), encode(7, &name("longer")), encode(7, &Vec::<Name>::new())];
        let all = made.concat();
        assert!(chunks(&all).eq(made.iter()));
        assert_eq!(chunks(&[]).count(), 0);
        for cut in 1..all.len() {
            let parts: Vec<_> = chunks(&all[..cut]).collect();
            assert_eq!(parts.concat(), all[..cut]);
            assert!(parts.iter().rev().skip(1).eq(made.iter().take(parts.len() - 1).rev()), "{cut}");
        }
    }
}
