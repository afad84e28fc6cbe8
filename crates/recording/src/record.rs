//! The records. Addresses are those of the program, which are the same on all nodes; times are nanoseconds since the
//! node has begun to record.
//!
//! Records are encoded by position, so a field is never added to one: a record that says more gets a number of its own
//! (see [`crate::FORMAT`]).

use gondwana_monitor::{Direction, Kind};
use serde::{Deserialize, Serialize};

/// The number of the launcher where a chunk says which node it is from.
pub const LAUNCHER: u16 = u16::MAX;

/// What was run. The first record, by the launcher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version of Gondwana that has recorded.
    pub version: String,
    /// The executable, as an absolute path.
    pub executable: String,
    /// The program and its arguments, as the user has called it.
    pub command: Vec<String>,
    /// How many nodes there were.
    pub nodes: u16,
    /// `rc` or `sc`.
    pub consistency: String,
    /// `shm` or `tcp`.
    pub fabric: String,
    /// The policies of threads and memory in the words of the options.
    pub threads: String,
    /// See `threads`.
    pub memory: String,
    /// The plan that was applied; empty if there was none.
    pub plan: String,
    /// When the run began, in seconds since 1970.
    pub began: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
}

/// A node has begun to record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The name of its computer.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// Shared addresses, as this node knows them now. Later ones come with later records.
    pub segments: Vec<SegmentRecord>,
    /// Files that are loaded.
    pub images: Vec<ImageRecord>,
}

/// A range of shared addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// First address.
    pub start: u64,
    /// Behind the last address.
    pub end: u64,
    /// What is there.
    pub kind: SegmentKind,
}

/// What is in a range of addresses.
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

/// A file that is loaded, the executable first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    /// Its path.
    pub path: String,
    /// What has to be added to addresses in the file.
    pub base: u64,
    /// The addresses that it takes.
    pub start: u64,
    /// Behind the last of them.
    pub end: u64,
    /// Its build ID; empty if it has none.
    pub build_id: Vec<u8>,
}

/// A thread of the program that has started on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Its number for people; 0 runs `main`.
    pub number: u32,
    /// First address of its stack; 0 if it has none in shared memory.
    pub stack_start: u64,
    /// Behind the last address of its stack.
    pub stack_end: u64,
    /// The function that it began with.
    pub routine: u64,
    /// When.
    pub time: u64,
}

/// A place where memory is allocated. Numbers of sites belong to the node that has recorded them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SiteRecord {
    /// Its number on this node, from 1.
    pub number: u32,
    /// Return addresses, that of the call of `malloc` first.
    pub stack: Vec<u64>,
}

/// A block of memory that was allocated on this node. A later one at the same address takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Its first address.
    pub address: u64,
    /// How long it is, as the program has asked.
    pub bytes: u64,
    /// Where it was allocated: the number of a [`SiteRecord`] of this node, 0 if that is not known.
    pub site: u32,
    /// The thread that has allocated it.
    pub thread: u32,
}

/// Blocks that differ only in where they are: from the same place, of the same thread, of the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSeries {
    /// The first of them.
    pub first: BlockRecord,
    /// How far each of the others begins behind the one before it, as multiples of [`BlockSeries::UNIT`]; never 0.
    pub distances: Vec<u32>,
}

impl BlockSeries {
    /// Bytes. Blocks begin at multiples of it.
    pub const UNIT: u64 = 16;

    /// Programs that build structures allocate blocks of a few kinds by turns: a block is compared with so many before it that
    /// were of other kinds.
    const KINDS: usize = 8;

    /// All of the blocks, those of ascending addresses together as far as they are alike. They must not overlap, since their order
    /// is lost.
    #[must_use]
    pub fn gather(objects: impl IntoIterator<Item = BlockRecord>) -> Vec<Self> {
        // With the address of the last of each.
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

    /// How far behind the last of these blocks another one begins, if it is alike and that can be told.
    fn distance(&self, last: u64, object: &BlockRecord) -> Option<u32> {
        let is_alike = BlockRecord { address: self.first.address, ..*object } == self.first;
        let bytes = object.address.checked_sub(last).filter(|&bytes| is_alike && bytes > 0)?;
        bytes.is_multiple_of(Self::UNIT).then(|| (bytes / Self::UNIT).try_into().ok())?
    }

    /// Each of the blocks.
    pub fn objects(&self) -> impl Iterator<Item = BlockRecord> {
        let others = self.distances.iter().scan(self.first.address, |address, &distance| {
            *address += u64::from(distance) * Self::UNIT;
            Some(BlockRecord { address: *address, ..self.first })
        });
        std::iter::once(self.first).chain(others)
    }
}

/// Transactions of one node within some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// What happened. Each transaction is in the record of one node only: that which caused it
    /// ([`Direction::Out`]), or for notices, invalidations and recalls that which suffered it.
    pub rows: Vec<TransactionRow>,
}

/// Like transactions taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionRow {
    /// First address of the unit of memory that they were about.
    pub address: u64,
    /// The length of the unit, as a power of two of bytes (5 for 32 bytes).
    pub unit: u8,
    /// What they were.
    pub kind: Kind,
    /// Which way they went.
    pub direction: Direction,
    /// The other node.
    pub peer: u16,
    /// The number of the thread, plus 1; 0 if none.
    pub thread: u32,
    /// The address of the instruction that touched the memory; 0 if nobody knows.
    pub code: u64,
    /// How many there were.
    pub count: u32,
    /// Bytes of contents that moved.
    pub bytes: u64,
}

/// Transactions of one node within some time, of stretches of memory whose parts all had as many of them: more than the rows of an
/// [`Interval`] can say, and beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretches {
    /// When the time began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// What happened.
    pub stretches: Vec<Stretch>,
}

/// Like transactions, of each part of a stretch of memory as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// All of them, about the whole stretch.
    pub row: TransactionRow,
    /// The number of equal parts of it, as a power of two: 1 to [`Stretch::MOST_PARTS`].
    pub parts: u8,
}

impl Stretch {
    /// The largest [`Stretch::parts`].
    pub const MOST_PARTS: u8 = 9;

    /// What happened to each part. The parts of a stretch have as many transactions and bytes each; of numbers that cannot be
    /// divided, the first one has the rest.
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

/// Which bytes of a page this node has written, since it has begun to record. A later record of a page takes the place
/// of an earlier one. Only diffs tell that: nothing is known of pages that were written at their home, nor under `sc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub struct WrittenRecord {
    /// First address of the page.
    pub address: u64,
    /// Which blocks of 64 bytes have written bytes, a bit each.
    pub blocks: u64,
    /// For each of those blocks, in ascending order, a bit for each byte.
    pub bytes: Vec<u64>,
}

/// [`WrittenRecord`] as it is in the file: most blocks are written wholly.
#[derive(Serialize, Deserialize)]
struct Packed {
    address: u64,
    blocks: u64,
    /// Those of the blocks that are written wholly.
    full: u64,
    /// The masks of the others.
    partial: Vec<u64>,
}

/// The numbers of the bits of a word that are set, ascending.
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

/// A pointer in a variable of the program: the word at `address` holds `value`, the address of an allocated block of the
/// node that has recorded this, or what may be one of another node's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Where the pointer is.
    pub address: u64,
    /// Where it points.
    pub value: u64,
}

/// What is known of fewer data areas than there are because there was too much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Blocks that no [`BlockRecord`] tells of.
    pub objects: u64,
    /// Chains of calls, found by allocations, that no [`SiteRecord`] tells of.
    pub sites: u64,
    /// Diffs that no [`WrittenRecord`] has.
    pub diffs: u64,
    /// Pointers that no [`Reference`] tells of.
    pub references: u64,
}

/// The counters of a node's filters, when it was asked for them or ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankRecord {
    /// When.
    pub time: u64,
    /// The filters that are set.
    pub filters: Vec<FilterCounts>,
}

/// What one filter has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterCounts {
    /// First address.
    pub start: u64,
    /// Behind the last address.
    pub end: u64,
    /// The length of a unit, as a power of two of bytes.
    pub unit: u8,
    /// The kinds, as [`gondwana_monitor::Kinds::bits`] has them.
    pub kinds: u16,
    /// Counters that are not 0, in ascending order.
    pub counters: Vec<Counted>,
}

/// One counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Its number within the filter: that of the unit, from the start.
    pub unit: u32,
    /// What it counted.
    pub count: u64,
}

/// A filter that the monitor of a node has set by itself to look closer at what was hot (`--monitor=auto`): it counted
/// pages that threads of this node had to wait for, and their first writes. Several with the same times and range have a
/// part of the counters each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredFilterRecord {
    /// When it was set.
    pub begin: u64,
    /// Until when it has counted.
    pub end: u64,
    /// What it has counted in that time.
    pub filter: FilterCounts,
}

/// A node has ended in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub time: u64,
    /// Messages that the node has sent since it has begun to record.
    pub messages: u64,
    /// Bytes that it has sent.
    pub bytes: u64,
    /// Transactions that are in no interval because there were too many to be kept.
    pub lost: u64,
}

/// What a node had done by the end of an interval, since it has begun to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalsRecord {
    /// When.
    pub time: u64,
    /// Faults that its threads have taken.
    pub faults: u64,
    /// Messages that it has sent.
    pub messages: u64,
    /// Bytes that it has sent.
    pub bytes: u64,
}

/// What the program calls the data in a range of addresses. A later name hides earlier ones where they overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// First address.
    pub start: u64,
    /// Behind the last address.
    pub end: u64,
    /// The name.
    pub name: String,
}
