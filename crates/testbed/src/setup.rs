//! What a run is set up with: the machine's size, and the programs of its threads.

use gondwana_coherence::{CommonAfter, Layout, Managers, Page, Region};
use gondwana_topology::{Id, NodeId};
use std::num::NonZeroU8;

/// The number of times after which pages become common; 0: never, 4: as soon as they are touched.
#[must_use]
pub fn common_after(number: u8) -> Option<CommonAfter> {
    if number == 4 { Some(CommonAfter::Touch) } else { NonZeroU8::new(number).map(CommonAfter::Times) }
}

/// One instruction of a thread. Addresses count bytes from the start of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Locks a mutex, by its number.
    Lock(usize),
    /// Unlocks it.
    Unlock(usize),
    /// Reads the byte at an address.
    Read(usize),
    /// Writes a byte at an address.
    Write(usize, u8),
    /// Reads the byte at an address that another thread may be writing: only what a program as a whole has read can be wrong.
    Look(usize),
    /// Adds to the byte at an address and reads what was there, in one instruction.
    Add(usize, u8),
    /// Says that the thread is about to synchronise on a page.
    Promote(u32),
    /// Waits for all threads.
    Barrier,
    /// The home of these pages is to be that node.
    Place {
        /// The first page.
        first: u32,
        /// How many pages.
        count: u32,
        /// The node; `None`: any.
        home: Option<u16>,
        /// Threads may have used them.
        used: bool,
    },
    /// Threads of other nodes are about to use what this one used alone.
    Expose,
    /// The node catches up with the others.
    CatchUp,
}

/// What doesn't change while a world runs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Nodes.
    pub nodes: usize,
    /// Pages of the span.
    pub pages: usize,
    /// Bytes of a page.
    pub page_size: usize,
    /// The node that a thread runs on, and its program.
    pub threads: Vec<(usize, Vec<Op>)>,
    /// Mutexes.
    pub locks: usize,
    /// The release is made when the lock leaves the node, for the sake of the node that gets it, not at each unlock. Its token is
    /// a message behind those of the protocol, as are the arrivals at barriers of two nodes.
    pub lazy: bool,
    /// How many pages ahead a fault may bring.
    pub ahead: u32,
    /// A fault at a page has the one so many pages later brought early, if not 0.
    pub stride: u32,
    /// All pages are managed by this node; else evenly.
    pub manager: Option<u16>,
    /// Where the home of the first pages is to be from the beginning.
    pub placed: Vec<Option<u16>>,
    /// The homes are given these pages before anybody touches them.
    pub given: bool,
}

impl Setup {
    /// So many nodes and pages, managed evenly, without threads and mutexes; nothing comes ahead, and no home is placed.
    pub fn new(nodes: usize, pages: usize, page_size: usize) -> Self {
        Self {
            nodes,
            pages,
            page_size,
            threads: Vec::new(),
            locks: 0,
            lazy: true,
            ahead: 0,
            stride: 0,
            manager: None,
            placed: Vec::new(),
            given: false,
        }
    }

    /// The machine as node `me` sees it.
    pub fn layout(&self, me: usize) -> Layout {
        let number = |number: usize| u32::try_from(number).expect("layouts have numbers of 32 bits");
        let nodes = u16::try_from(self.nodes).expect("nodes have numbers of 16 bits");
        let count = number(self.pages);
        let managers = match self.manager {
            Some(node) => Managers::Node(NodeId(node)),
            None => Managers::Even { per_node: (count / u32::from(nodes)).max(1) },
        };
        let regions = vec![Region { first: Page(0), count, managers }];
        Layout::new(nodes, NodeId::from_index(me), number(self.page_size), regions)
    }
}
