//! Recordings of monitored runs: the records, and the file that holds them.
//!
//! docs/recording-format.md describes the file. A node makes whole chunks and the launcher appends them as they
//! arrive, so that a run that is killed leaves a valid recording up to its last chunk.

#![forbid(unsafe_code)]

mod check;
mod chunk;
mod made;
mod read;
mod record;

pub use chunk::{FILE_HEADER, FORMAT, MAX_CHUNK, Record, chunks, encode, kind_and_node};
pub use read::{Cut, ReadError, Reader, Recording, read};
pub use record::{
    BankRecord, BlockRecord, BlockSeries, ConstructRecord, Counted, End, FilterCounts, HomeRecord,
    ImageRecord, Interval, LAUNCHER, Name, Omitted, Reference, RetiredFilterRecord, RunRecord, SegmentKind,
    SegmentRecord, SiteRecord, Started, Stretch, Stretches, ThreadRecord, TotalsRecord, TransactionRow,
    WrittenRecord,
};
