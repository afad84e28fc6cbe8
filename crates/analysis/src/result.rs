//! What comes out of an analysis: the contents of tables, pictures and advice.

use crate::object_table::ObjectTable;
use gondwana_recording::RunRecord;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A recording, understood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// What was run.
    pub run: RunRecord,
    /// How long was recorded, in seconds.
    pub seconds: f64,
    /// All nodes together.
    pub totals: Totals,
    /// Each node.
    pub nodes: Vec<NodeTotal>,
    /// The threads of the program, by number.
    pub threads: Vec<ThreadInfo>,
    /// The data areas that crossed between nodes, hottest first.
    pub areas: Vec<Area>,
    /// What went from one node to another: `flows[from][to]`.
    pub flows: Vec<Vec<Flow>>,
    /// What happened when.
    pub timeline: Vec<TimelineSlot>,
    /// The locks that passed between nodes, hottest first.
    pub locks: Vec<LockHandOffs>,
    /// Where transactions were, for the picture: ascending addresses.
    pub cells: Vec<Cell>,
    /// What each thread did with each page, for the advice: ascending addresses. Too much for a text.
    #[serde(skip)]
    pub pages: Vec<PageUse>,
    /// What is at the addresses of cells, where that is more than an area: the hottest of them.
    #[serde(default)]
    pub parts: Vec<NamedPart>,
    /// The variables and blocks that areas are made of, for pictures: no text has room for them.
    #[serde(skip)]
    pub objects: ObjectTable,
    /// The filters of the nodes' banks.
    #[serde(default)]
    pub filters: Vec<BankFilter>,
    /// What people should know about the recording itself, as sentences: that it is cut, that the program has changed since.
    pub notes: Vec<String>,
}

/// Numbers of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Pages fetched for reads, in which a thread waited; of all kinds of misses.
    pub reads: u64,
    /// Pages fetched for writes.
    pub writes: u64,
    /// Of both, those that the node never had before.
    pub cold: u64,
    /// Of both, excess misses.
    pub excess: u64,
    /// Pages that came along with others.
    pub ahead: u64,
    /// First writes of pages that were here for reading.
    pub upgrades: u64,
    /// Diffs sent.
    pub diffs: u64,
    /// Write notices received.
    pub notices: u64,
    /// Copies given up.
    pub invalidations: u64,
    /// Pages that a node had for itself alone and others asked for.
    pub recalls: u64,
    /// Bytes of pages and diffs that moved.
    pub bytes: u64,
}

impl Totals {
    /// What is asked of other nodes: the number that the papers and the advice count.
    #[must_use]
    pub fn requests(&self) -> u64 {
        // Recordings may say anything.
        [self.reads, self.writes, self.diffs, self.notices].into_iter().fold(0, u64::saturating_add)
    }
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeTotal {
    /// The name of its computer.
    pub host: String,
    /// What it did.
    pub totals: Totals,
    /// Messages that it has sent; 0 if it did not end in order.
    pub messages: u64,
    /// Bytes that it has sent.
    pub sent: u64,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// Its number; 0 runs `main`.
    pub number: u32,
    /// Its node.
    pub node: u16,
    /// The function that it began with; empty if nobody knows.
    pub routine: String,
}

/// Data that belongs together: a variable, all blocks of one place of allocation, a stack, a mapping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// What people call it: a variable's name, `name = malloc` by way of a pointer, or the place.
    pub name: String,
    /// What it is.
    pub origin: Origin,
    /// Where it is: ranges of addresses that do not overlap, in ascending order. Of very many blocks those that are near to
    /// each other make one range.
    pub ranges: Vec<Range<u64>>,
    /// How many blocks it has; 1 for a variable.
    pub objects: u64,
    /// All its bytes.
    pub bytes: u64,
    /// All nodes together.
    pub totals: Totals,
    /// Each node.
    pub nodes: Vec<AreaNode>,
    /// How it is shared.
    pub pattern: Pattern,
    /// The instructions that fetched it, hottest first: the hottest few.
    pub places: Vec<CodePlace>,
    /// Its parts with names at which it was fetched, hottest first.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// The pages that nodes lost to writers of bytes that they do not use themselves, hottest first: the hottest few.
    pub falsely_shared: Vec<FalselySharedPage>,
}

/// What an area is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A variable of the executable (`library` is empty) or a library.
    Variable {
        /// Its name as a plan needs it.
        name: String,
        /// The file name of the library.
        library: String,
    },
    /// Blocks that were allocated by one chain of calls.
    Allocation {
        /// The call as a plan needs it (`function+0x4f`), the innermost that is the program's; empty if there is none.
        site: String,
        /// The call of the function that this one is in, if it is in the same file; empty if it is not, or nobody knows.
        #[serde(default)]
        caller: String,
        /// The file name of the library that the call is in; empty for the executable.
        library: String,
        /// The calls, the innermost first, as lines for people.
        stack: Vec<String>,
        /// The threads that allocated.
        threads: Vec<u32>,
    },
    /// The stack of a thread.
    Stack {
        /// The thread.
        thread: u32,
    },
    /// Memory that the program has mapped.
    Mapping,
    /// Anything else.
    Other,
}

/// What a node did with an area.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AreaNode {
    /// Its transactions.
    pub totals: Totals,
    /// Bytes of the area that it has written, if that is known: of diffs.
    pub written: u64,
    /// Threads of this node that touched the area.
    pub threads: Vec<u32>,
    /// Pages of the area that this node fetched from each other node, by node.
    pub from: Vec<u64>,
}

/// How an area is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each part is used by one node, which may not be its home.
    #[default]
    Private,
    /// Nobody writes it once it is initialised.
    ReadOnly,
    /// One node writes each part, others read it.
    ProducerConsumer,
    /// Parts are read and written by one node after the other.
    Migratory,
    /// Nodes write different bytes of the same pages.
    FalselyShared,
    /// Many nodes write the same bytes.
    WidelyWritten,
}

impl Pattern {
    /// The word for people, which is also that of JSON and CSV.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::ReadOnly => "read-only",
            Self::ProducerConsumer => "producer-consumer",
            Self::Migratory => "migratory",
            Self::FalselyShared => "falsely-shared",
            Self::WidelyWritten => "widely-written",
        }
    }
}

/// A place in the program that fetched an area.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// `file:line`, or `function+0x4f`, or an address, as far as is known.
    pub text: String,
    /// The function; empty if nobody knows.
    pub function: String,
    /// Fetches for reads.
    pub reads: u64,
    /// Fetches and upgrades for writes.
    pub writes: u64,
}

/// A part of an area that has a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// What one writes behind the name of the variable, without the numbers of elements: `.count`, `[].position`.
    pub name: String,
    /// Fetches for reads that began there.
    pub reads: u64,
    /// Fetches and upgrades for writes that began there.
    pub writes: u64,
}

/// A page that is falsely shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FalselySharedPage {
    /// First address of the page.
    pub page: u64,
    /// How often it was fetched.
    pub fetches: u64,
    /// Who writes or reads which bytes of it, in ascending order of the bytes.
    pub writers: Vec<Writer>,
}

/// Bytes of a falsely shared page that one node uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// The node.
    pub node: u16,
    /// It writes them; else it reads them.
    pub writes: bool,
    /// First address and, behind the last, the end.
    pub bytes: Range<u64>,
    /// What is there: `counters[3]`, `bodies[17].position`; as far as is known.
    pub name: String,
}

/// What went from one node to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Pages.
    pub pages: u64,
    /// Diffs.
    pub diffs: u64,
    /// Write notices.
    pub notices: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// Some time of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineSlot {
    /// When it began, in seconds.
    pub begin: f64,
    /// When it ended.
    pub end: f64,
    /// What each node did.
    pub nodes: Vec<Totals>,
}

/// A lock that passed between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHandOffs {
    /// What people call it.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// How often it passed to each node, by node.
    pub hand_offs: Vec<u64>,
}

/// A part of an area that transactions were about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    /// First address and, behind the last, the end.
    pub range: Range<u64>,
    /// The area, by its place in [`Analysis::areas`].
    pub area: u32,
    /// What is there, as one writes it in the source: `counters[3]`, `bodies[17].position`.
    pub name: String,
}

/// A filter of the nodes' banks, and what it has counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BankFilter {
    /// First address and, behind the last, the end.
    pub range: Range<u64>,
    /// Bytes that each counter is about.
    pub unit: u64,
    /// The kinds of transactions that it counted, by their words.
    pub kinds: Vec<String>,
    /// The monitor had set it by itself, to look closer at what was hot; else somebody has asked for it.
    pub own: bool,
    /// When it was there: from when it was first set until it was taken away, or read, last.
    pub seconds: Range<f64>,
    /// What it has counted on each node.
    pub nodes: Vec<u64>,
    /// The units that most was counted of, on all nodes together: the hottest few.
    pub hottest: Vec<HotUnit>,
}

impl BankFilter {
    /// What it has counted on all nodes.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.nodes.iter().copied().fold(0, u64::saturating_add)
    }
}

/// A unit of memory that a filter has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotUnit {
    /// Its first address.
    pub address: u64,
    /// What was counted, on all nodes.
    pub counted: u64,
    /// What is there: the name of a data area, with the part that the unit begins with where units are no larger than
    /// pages; empty for larger ones.
    pub name: String,
}

/// Transactions at one place of memory, by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// First address of the unit.
    pub address: u64,
    /// Its length as a power of two of bytes.
    pub unit: u8,
    /// The area, by its place in [`Analysis::areas`].
    pub area: u32,
    /// The node.
    pub node: u16,
    /// The thread, plus 1; 0 if none.
    pub thread: u32,
    /// Fetches for reads.
    pub reads: u32,
    /// Fetches and upgrades for writes.
    pub writes: u32,
    /// Bytes that moved.
    pub bytes: u64,
}

/// What one thread did with one page, as far as it had to do with one other node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageUse {
    /// First address of the page, or of several that were not told apart.
    pub address: u64,
    /// The length as a power of two of bytes: that of a page or more.
    pub unit: u8,
    /// The area, by its place in [`Analysis::areas`].
    pub area: u32,
    /// The node.
    pub node: u16,
    /// The thread, plus 1; 0 if none.
    pub thread: u32,
    /// The home, which has sent the page or got the diff; of notices, the node that has written.
    pub peer: u16,
    /// Fetches for reads.
    pub reads: u32,
    /// Fetches for writes.
    pub writes: u32,
    /// First writes of a page that was here for reading.
    pub upgrades: u32,
    /// Times that it came along with other pages.
    pub ahead: u32,
    /// Diffs sent.
    pub diffs: u32,
    /// Write notices received.
    pub notices: u32,
    /// Bytes that moved.
    pub bytes: u64,
}
