//! The records of a recording. Addresses are the program's, which are the same on all nodes; times are nanoseconds
//! since the node began to record.
//!
//! Records are encoded by position, so a field is never added to one: a record with more fields is a new kind (see
//! [`crate::FORMAT`]).

use gondwana_monitor::{Direction, Kind};
use serde::{Deserialize, Serialize};

/// The node number of the launcher in a chunk.
pub const LAUNCHER: u16 = u16::MAX;

/// The run: its command and options. The first record, written by the launcher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version of Gondwana that recorded.
    pub version: String,
    /// The executable, as an absolute path.
    pub executable: String,
    /// The program and its arguments, as the user gave them.
    pub command: Vec<String>,
    /// The number of nodes.
    pub nodes: u16,
    /// `rc` or `sc`; [`RunRecord::CACHES`] on a simulated machine.
    pub consistency: String,
    /// `shm` or `tcp`; the name of a simulated machine.
    pub fabric: String,
    /// The policies of threads and memory, in the words of the options.
    pub threads: String,
    /// See `threads`.
    pub memory: String,
    /// The plan that was applied; empty if there was none.
    pub plan: String,
    /// When the run began, in seconds since 1970.
    pub began: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
}

impl RunRecord {
    /// The consistency of a machine whose hardware keeps caches coherent.
    pub const CACHES: &str = "coherent caches";

    /// True if nodes exchanged lines of caches, and not pages.
    #[must_use]
    pub fn exchanges_lines(&self) -> bool {
        self.consistency == Self::CACHES
    }
}

/// A node has begun to record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The name of the node's computer.
    pub host: String,
    /// The process identifier of the node.
    pub process: u32,
    /// The shared addresses of the node at that time. Later ones are in records of their own.
    pub segments: Vec<SegmentRecord>,
    /// The loaded files at that time.
    pub images: Vec<ImageRecord>,
}

/// A range of shared addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// What the addresses are used for.
    pub kind: SegmentKind,
}

/// The use of a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SegmentKind {
    /// Memory that this node allocates from.
    Heap,
    /// Stacks of threads.
    Stacks,
    /// Variables of the executable or a library.
    Data,
    /// A mapping that the program has made.
    Mapping,
}

/// A loaded file. The executable comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    /// Its path.
    pub path: String,
    /// The difference between addresses in memory and in the file.
    pub base: u64,
    /// The first address that the file occupies.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Its build ID; empty if it has none.
    pub build_id: Vec<u8>,
}

/// A thread of the program that has started on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Its number, which reports show; 0 runs `main`.
    pub number: u32,
    /// First address of its stack; 0 if it has none in shared memory.
    pub stack_start: u64,
    /// One past the last address of its stack.
    pub stack_end: u64,
    /// The function with which it began.
    pub routine: u64,
    /// When it started.
    pub time: u64,
}

/// An allocation site. Numbers of sites belong to the node that recorded them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SiteRecord {
    /// Its number on this node, from 1.
    pub number: u32,
    /// Return addresses, innermost first: that of the call of `malloc`.
    pub stack: Vec<u64>,
}

/// A block of memory that was allocated on this node. A later block at the same address replaces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Its first address.
    pub address: u64,
    /// The length that the program requested, in bytes.
    pub bytes: u64,
    /// The number of its [`SiteRecord`] of this node; 0 if unknown.
    pub site: u32,
    /// The number of the thread that allocated it.
    pub thread: u32,
}

/// Blocks that differ only in their addresses: of one site, one thread and one length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSeries {
    /// The first of them.
    pub first: BlockRecord,
    /// The distance of each further block from the one before it, in multiples of [`BlockSeries::UNIT`]; never 0.
    pub distances: Vec<u32>,
}

impl BlockSeries {
    /// The unit of distances, in bytes. Blocks begin at multiples of it.
    pub const UNIT: u64 = 16;

    /// Programs that build structures allocate blocks of a few kinds by turns: a block is compared with the last
    /// blocks of this many other series.
    const KINDS: usize = 8;

    /// Gathers blocks into series, each with ascending addresses. The blocks must not overlap, because their order is
    /// lost.
    #[must_use]
    pub fn gather(objects: impl IntoIterator<Item = BlockRecord>) -> Vec<Self> {
        // With the address of the last block of each series.
        let mut gathered: Vec<(Self, u64)> = vec![];
        for object in objects {
            let found = gathered.iter_mut().rev().take(Self::KINDS).find_map(|(alike, last)| {
                let distance = alike.distance(*last, &object)?;
                Some((alike, last, distance))
            });
            match found {
                Some((alike, last, distance)) => {
                    alike.distances.push(distance);
                    *last = object.address;
                }
                None => gathered.push((Self { first: object, distances: vec![] }, object.address)),
            }
        }
        gathered.into_iter().map(|(alike, _)| alike).collect()
    }

    /// The distance of a block from the last one of this series, if it belongs to the series and the distance fits.
    fn distance(&self, last: u64, object: &BlockRecord) -> Option<u32> {
        let is_alike = BlockRecord { address: self.first.address, ..*object } == self.first;
        let bytes = object.address.checked_sub(last).filter(|&bytes| is_alike && bytes > 0)?;
        bytes.is_multiple_of(Self::UNIT).then(|| (bytes / Self::UNIT).try_into().ok())?
    }

    /// The blocks of the series.
    pub fn objects(&self) -> impl Iterator<Item = BlockRecord> {
        let others = self.distances.iter().scan(self.first.address, |address, &distance| {
            *address += u64::from(distance) * Self::UNIT;
            Some(BlockRecord { address: *address, ..self.first })
        });
        std::iter::once(self.first).chain(others)
    }
}

/// Transactions of one node in an interval of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// The transactions. Each transaction is in the record of one node only: the node that caused it
    /// ([`Direction::Out`]), or for notices, invalidations and recalls the node that suffers it.
    pub rows: Vec<TransactionRow>,
}

/// Like transactions, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionRow {
    /// First address of the unit of memory that they were about.
    pub address: u64,
    /// log2 of the bytes of the unit.
    pub unit: u8,
    /// The kind of the transactions.
    pub kind: Kind,
    /// Their direction.
    pub direction: Direction,
    /// The other node.
    pub peer: u16,
    /// The number of the thread, plus 1; 0 if none.
    pub thread: u32,
    /// The address of the instruction that touched the memory; 0 if unknown.
    pub code: u64,
    /// The number of transactions.
    pub count: u32,
    /// Bytes of contents that moved.
    pub bytes: u64,
}

/// Transactions of one node in an interval of time, about stretches of memory whose parts all had the same
/// transactions. They are beside those of the [`Interval`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretches {
    /// When the interval began.
    pub begin: u64,
    /// When the interval ended.
    pub end: u64,
    /// The transactions.
    pub stretches: Vec<Stretch>,
}

/// Like transactions about all parts of a stretch of memory: the same number for each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The sum over all parts; its unit is the whole stretch.
    pub row: TransactionRow,
    /// log2 of the number of equal parts: 1 to [`Stretch::MOST_PARTS`].
    pub parts: u8,
}

impl Stretch {
    /// The largest [`Stretch::parts`].
    pub const MOST_PARTS: u8 = 9;

    /// The rows of the parts. Counts and bytes are divided evenly; the first part has the remainder.
    pub fn rows(&self) -> impl Iterator<Item = TransactionRow> + use<> {
        let row = self.row;
        let parts = self.parts.min(row.unit).min(Self::MOST_PARTS);
        let unit = row.unit - parts;
        let (count, bytes) = (row.count >> parts, row.bytes >> parts);
        let first = TransactionRow {
            unit,
            count: row.count - count * ((1 << parts) - 1),
            bytes: row.bytes - bytes * ((1 << parts) - 1),
            ..row
        };
        let others = (1..1_u64 << parts).map(move |part| TransactionRow {
            address: row.address + (part << unit),
            unit,
            count,
            bytes,
            ..row
        });
        std::iter::once(first).chain(others)
    }
}

/// The bytes of a page that this node has written since it began to record. A later record of a page replaces an
/// earlier one. The bytes come from diffs: pages written at their home, or under `sc`, have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub struct WrittenRecord {
    /// First address of the page.
    pub address: u64,
    /// The blocks of 64 bytes that have written bytes, one bit each.
    pub blocks: u64,
    /// For each of those blocks, in ascending order, one bit for each byte.
    pub bytes: Vec<u64>,
}

/// The encoding of [`WrittenRecord`] in the file, which is short because most blocks are written wholly.
#[derive(Serialize, Deserialize)]
struct Packed {
    address: u64,
    blocks: u64,
    /// The blocks that are written wholly.
    full: u64,
    /// The masks of the other blocks.
    partial: Vec<u64>,
}

/// The numbers of the set bits of a word, ascending.
fn bits(word: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1)
}

impl From<WrittenRecord> for Packed {
    fn from(WrittenRecord { address, blocks, bytes }: WrittenRecord) -> Self {
        let whole = bits(blocks).zip(&bytes).filter(|(_, mask)| **mask == u64::MAX);
        let full = whole.fold(0, |full, (block, _)| full | 1 << block);
        let partial = bytes.into_iter().filter(|mask| *mask != u64::MAX).collect();
        Self { address, blocks, full, partial }
    }
}

impl From<Packed> for WrittenRecord {
    fn from(Packed { address, blocks, full, partial }: Packed) -> Self {
        let mut partial = partial.into_iter();
        let bytes = bits(blocks)
            .map(|block| if full >> block & 1 == 1 { u64::MAX } else { partial.next().unwrap_or(0) });
        Self { address, blocks, bytes: bytes.collect() }
    }
}

/// A pointer in a variable of the program: the word at `address` holds `value`, which is the address of a block of
/// the node that recorded this, or possibly of another node's block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Where the pointer is.
    pub address: u64,
    /// Where it points.
    pub value: u64,
}

/// How much the recording leaves out, because there was too much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Blocks without a [`BlockRecord`].
    pub objects: u64,
    /// Chains of calls without a [`SiteRecord`].
    pub sites: u64,
    /// Diffs whose bytes are in no [`WrittenRecord`].
    pub diffs: u64,
    /// Pointers without a [`Reference`].
    pub references: u64,
}

/// The counters of a node's filters, on request or at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankRecord {
    /// When the counters were read.
    pub time: u64,
    /// The filters that were set.
    pub filters: Vec<FilterCounts>,
}

/// The counters of one filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterCounts {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// log2 of the bytes of a unit.
    pub unit: u8,
    /// The kinds, as [`gondwana_monitor::Kinds::bits`] has them.
    pub kinds: u16,
    /// Counters that are not 0, in ascending order.
    pub counters: Vec<Counted>,
}

/// One counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The index of its unit in the range of the filter.
    pub unit: u32,
    /// Its value.
    pub count: u64,
}

/// A filter that adaptive refinement (`--monitor=auto`) had set: it counted pages that threads of this node waited
/// for, and their first writes. Several records with the same times and range hold a part of the counters each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredFilterRecord {
    /// When it was set.
    pub begin: u64,
    /// When it was removed.
    pub end: u64,
    /// Its counters.
    pub filter: FilterCounts,
}

/// A node has ended in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When the node ended.
    pub time: u64,
    /// Messages that the node has sent since it began to record.
    pub messages: u64,
    /// Bytes that it has sent.
    pub bytes: u64,
    /// Transactions that are in no interval because the aggregation table was full.
    pub lost: u64,
}

/// The totals of a node since it began to record, as of the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalsRecord {
    /// The end of the interval.
    pub time: u64,
    /// Faults that its threads have taken.
    pub faults: u64,
    /// Messages that it has sent.
    pub messages: u64,
    /// Bytes that it has sent.
    pub bytes: u64,
}

/// What a thread did before the barriers that end a construct of OpenMP, and how long it waited there, since its last such record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstructRecord {
    /// An instruction of the construct: of the call at its end, or the first one of the function of a region. 0 stands for several
    /// constructs, of which there were too many.
    pub code: u64,
    /// The barrier is that at the end of a parallel region.
    pub region: bool,
    /// Its work was dealt out while it ran (`schedule(dynamic)`, `schedule(guided)`, sections).
    pub dealt: bool,
    /// The number of the thread.
    pub thread: u32,
    /// How often the thread has come to the barrier.
    pub count: u64,
    /// Time in the region or since the barrier before, in nanoseconds.
    pub worked: u64,
    /// The longest of these times.
    pub longest: u64,
    /// Time at the barrier, without tasks that the thread ran there, in nanoseconds.
    pub waited: u64,
}

/// What a node has used of a page of its own: of memory whose home it is, so that nothing crossed between nodes. Only
/// simulated runs have such records; a page has one of each node that has been its home at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeRecord {
    /// First address of the page.
    pub address: u64,
    /// Blocks that the page's memory gave to the node for reads.
    pub reads: u64,
    /// Blocks that it gave to the node for writes.
    pub writes: u64,
    /// Blocks that the node wrote back.
    pub diffs: u64,
    /// Bytes of all these.
    pub bytes: u64,
}

/// The program's name for the data in a range of addresses. A later name hides earlier ones where they overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The name.
    pub name: String,
}
