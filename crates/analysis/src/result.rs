//! The result of an analysis: the contents of tables, pictures and advice.

use crate::object_table::ObjectTable;
use crate::page_uses::{HomeUse, PageUse};
use gondwana_recording::RunRecord;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// An analysed recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The run that was recorded.
    pub run: RunRecord,
    /// The recorded time, in seconds.
    pub seconds: f64,
    /// The totals of all nodes together.
    pub totals: Totals,
    /// The totals of each node.
    pub nodes: Vec<NodeTotal>,
    /// The threads of the program, by number.
    pub threads: Vec<ThreadInfo>,
    /// The data areas that crossed between nodes, hottest first.
    pub areas: Vec<Area>,
    /// The flows between nodes: `flows[from][to]`.
    pub flows: Vec<Vec<Flow>>,
    /// The totals of each time slot.
    pub timeline: Vec<TimelineSlot>,
    /// The locks that passed between nodes, hottest first.
    pub locks: Vec<LockHandOffs>,
    /// The variables that nodes change by atomic operations, hottest first.
    #[serde(default)]
    pub atomics: Vec<AtomicVariable>,
    /// The constructs of OpenMP that end with barriers, those at which threads waited longest first.
    #[serde(default)]
    pub constructs: Vec<Construct>,
    /// Transactions by address and thread, for the picture: ascending addresses.
    pub cells: Vec<Cell>,
    /// The use of each page by each thread, for the advice: ascending addresses. Too much for a text.
    #[serde(skip)]
    pub pages: Vec<PageUse>,
    /// What nodes have used of their own pages, where the recording has it: by number of the page and node. A page that moved
    /// has several homes.
    #[serde(skip)]
    pub homes: BTreeMap<(u64, u16), HomeUse>,
    /// The names of addresses of cells, where there is a more precise one than the area's: the hottest.
    #[serde(default)]
    pub parts: Vec<NamedPart>,
    /// The variables and blocks of the areas, for pictures: too many for a text.
    #[serde(skip)]
    pub objects: ObjectTable,
    /// The filters of the nodes' banks.
    #[serde(default)]
    pub filters: Vec<BankFilter>,
    /// Sentences about the recording itself: that it is cut, that the program has changed since.
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
    /// Prefetched pages, which came along with others.
    pub ahead: u64,
    /// First writes of pages that this node had for reading.
    pub upgrades: u64,
    /// Diffs sent.
    pub diffs: u64,
    /// Write notices received.
    pub notices: u64,
    /// Copies that were given up.
    pub invalidations: u64,
    /// Exclusive pages that another node requested.
    pub recalls: u64,
    /// Bytes of pages and diffs that moved.
    pub bytes: u64,
}

impl Totals {
    /// The requests: the number that the papers and the advice count.
    #[must_use]
    pub fn requests(&self) -> u64 {
        // A recording may hold any numbers.
        [self.reads, self.writes, self.diffs, self.notices].into_iter().fold(0, u64::saturating_add)
    }
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeTotal {
    /// The name of the node's computer.
    pub host: String,
    /// Its totals.
    pub totals: Totals,
    /// Messages that it has sent; 0 if it did not end normally.
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
    /// The function with which it began; empty if unknown.
    pub routine: String,
}

/// Data that belongs together: a variable, all blocks of one allocation site, a stack, a mapping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// Its name: the variable's, that of a pointer to its blocks, or the allocation site.
    pub name: String,
    /// Its origin.
    pub origin: Origin,
    /// Its addresses: ranges that do not overlap, in ascending order. If there are very many blocks, adjacent ones
    /// share a range.
    pub ranges: Vec<Range<u64>>,
    /// The number of its blocks; 1 for a variable.
    pub objects: u64,
    /// The sum of their bytes.
    pub bytes: u64,
    /// The totals of all nodes together.
    pub totals: Totals,
    /// The totals of each node.
    pub nodes: Vec<AreaNode>,
    /// Its pattern of sharing.
    pub pattern: Pattern,
    /// The hottest instructions that fetched it, hottest first.
    pub places: Vec<CodePlace>,
    /// Its named parts at which fetches began, hottest first.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// The hottest falsely shared pages, hottest first.
    pub falsely_shared: Vec<FalselySharedPage>,
}

/// The kind of memory of an area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A variable of the executable (`library` is empty) or a library.
    Variable {
        /// Its name, as a plan has it.
        name: String,
        /// The file name of the library.
        library: String,
    },
    /// Blocks that one chain of calls allocated.
    Allocation {
        /// The innermost call of the program, as a plan has it (`function+0x4f`); empty if there is none.
        site: String,
        /// The call of the function that contains that call, if it is in the same file; empty if it is not, or
        /// unknown.
        #[serde(default)]
        caller: String,
        /// The file name of the library that the call is in; empty for the executable.
        library: String,
        /// The calls, innermost first, as lines of text.
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

/// The use of an area by a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AreaNode {
    /// Its transactions.
    pub totals: Totals,
    /// Bytes of the area in the node's diffs.
    pub written: u64,
    /// Threads of this node that touched the area.
    pub threads: Vec<u32>,
    /// Pages of the area that this node fetched from each other node, by node.
    pub from: Vec<u64>,
}

/// A pattern of sharing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each part is used by one node, which may not be its home.
    #[default]
    Private,
    /// No node writes it after initialisation.
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
    /// The name of the pattern in tables, JSON and CSV.
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
    /// `file:line`, `function+0x4f` or an address, whichever is known.
    pub text: String,
    /// The function; empty if unknown.
    pub function: String,
    /// Fetches for reads.
    pub reads: u64,
    /// Fetches and upgrades for writes.
    pub writes: u64,
}

impl CodePlace {
    /// The places with the most reads and writes, from these sums by text and function.
    pub(crate) fn hottest(sums: HashMap<(String, String), (u64, u64)>, most: usize) -> Vec<Self> {
        let place = |((text, function), (reads, writes))| Self { text, function, reads, writes };
        let mut places: Vec<Self> = sums.into_iter().map(place).collect();
        places.sort_by(|a, b| {
            let heat = |place: &Self| Reverse(place.reads.saturating_add(place.writes));
            (heat(a), &a.text, &a.function).cmp(&(heat(b), &b.text, &b.function))
        });
        places.truncate(most);
        places
    }
}

/// A part of an area that has a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The suffix to the name of the variable, without the numbers of elements: `.count`, `[].position`.
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
    /// How often it was fetched, or came along with other pages where another node's write had taken it away.
    pub fetches: u64,
    /// The bytes that each node writes or reads, in ascending order.
    pub writers: Vec<UsedBytes>,
}

/// Bytes of a falsely shared page that one node uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedBytes {
    /// The node.
    pub node: u16,
    /// True if the node writes the bytes, false if it reads them.
    pub writes: bool,
    /// First address, and one past the last.
    pub bytes: Range<u64>,
    /// The name of the data: `counters[3]`, `bodies[17].position`; empty if unknown.
    pub name: String,
}

/// The transactions from one node to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Pages.
    pub pages: u64,
    /// Diffs.
    pub diffs: u64,
    /// Write notices.
    pub notices: u64,
    /// Bytes of pages and diffs.
    pub bytes: u64,
}

/// A time slot of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineSlot {
    /// When it began, in seconds.
    pub begin: f64,
    /// When it ended.
    pub end: f64,
    /// The totals of each node.
    pub nodes: Vec<Totals>,
}

/// A lock that passed between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHandOffs {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// The number of hand-offs to each node.
    pub hand_offs: Vec<u64>,
}

/// A variable, or an element or a field of one, that threads change by atomic operations, for which pages came from other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicVariable {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// The number of misses of each node that began at it: fetches and upgrades.
    pub nodes: Vec<u64>,
    /// The threads whose misses these were.
    pub threads: Vec<u32>,
    /// The hottest instructions that missed, hottest first.
    pub places: Vec<CodePlace>,
}

impl AtomicVariable {
    /// The misses of all nodes together.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.nodes.iter().copied().fold(0, u64::saturating_add)
    }
}

/// A construct of OpenMP, or a parallel region, whose threads wait for each other at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Construct {
    /// Where it is: `file:line`, `function+0x4f` or an address.
    pub place: String,
    /// The function that it is in; empty if unknown.
    pub function: String,
    /// It is the rest of a parallel region, up to its end.
    pub region: bool,
    /// Its work was dealt out while it ran.
    pub dealt: bool,
    /// How often it was executed.
    pub executions: u64,
    /// Its threads, by number.
    pub threads: Vec<ConstructThread>,
}

/// What a thread did in a construct.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConstructThread {
    /// Its number.
    pub number: u32,
    /// Its node.
    pub node: u16,
    /// How often it has executed the construct.
    pub executions: u64,
    /// Time since the barrier before, or the region's begin, in seconds.
    pub worked: f64,
    /// The longest of these times, in seconds.
    pub longest: f64,
    /// Time at the barrier that ends the construct, in seconds.
    pub waited: f64,
}

impl Construct {
    /// The work of all threads, in seconds.
    #[must_use]
    pub fn worked(&self) -> f64 {
        self.threads.iter().map(|thread| thread.worked).sum()
    }

    /// The waiting of all threads, in seconds.
    #[must_use]
    pub fn waited(&self) -> f64 {
        self.threads.iter().map(|thread| thread.waited).sum()
    }

    /// The thread that worked longest; that with the least number of several.
    #[must_use]
    pub fn slowest(&self) -> Option<&ConstructThread> {
        self.threads.iter().rev().max_by(|one, other| one.worked.total_cmp(&other.worked))
    }

    /// How much longer the slowest thread worked than the average, in seconds.
    #[must_use]
    pub fn ahead(&self) -> f64 {
        self.slowest().map_or(0.0, |slowest| slowest.worked - self.worked() / self.threads.len() as f64)
    }

    /// How long the threads would wait for the slowest one if it were the same each time, in seconds.
    #[must_use]
    pub fn uneven(&self) -> f64 {
        self.ahead() * self.threads.len() as f64
    }

    /// Its place, with its function.
    #[must_use]
    pub fn name(&self) -> String {
        if self.function.is_empty() || self.place.starts_with(&self.function) {
            self.place.clone()
        } else {
            format!("{} ({})", self.place, self.function)
        }
    }
}

/// A named part of an area.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPart {
    /// First address, and one past the last.
    pub range: Range<u64>,
    /// The area, as an index into [`Analysis::areas`].
    pub area: u32,
    /// Its name in the notation of the source: `counters[3]`, `bodies[17].position`.
    pub name: String,
}

/// A filter of the nodes' counter banks, and its counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BankFilter {
    /// First address, and one past the last.
    pub range: Range<u64>,
    /// Bytes of the unit of a counter.
    pub unit: u64,
    /// The kinds of transactions that it counted, by name.
    pub kinds: Vec<String>,
    /// True if adaptive refinement set the filter, false if a user requested it.
    pub own: bool,
    /// From when it was first set to when it was last read or removed.
    pub seconds: Range<f64>,
    /// Its count on each node.
    pub nodes: Vec<u64>,
    /// The hottest units, over all nodes together.
    pub hottest: Vec<HotUnit>,
}

impl BankFilter {
    /// Its count on all nodes together.
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
    /// Its count on all nodes together.
    pub counted: u64,
    /// The name of its data area, with the part that the unit begins with if units are no larger than pages; empty
    /// for larger units.
    pub name: String,
}

/// Transactions about one unit of memory, by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// First address of the unit.
    pub address: u64,
    /// log2 of the bytes of the unit.
    pub unit: u8,
    /// The area, as an index into [`Analysis::areas`].
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
