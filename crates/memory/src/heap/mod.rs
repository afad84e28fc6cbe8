//! The shared heap: which addresses of the span are in use as blocks, for `malloc` and anonymous `mmap`.
//!
//! The addresses are divided among the nodes ([`Layout`]); a node allocates from its own part only, so allocating
//! needs no message. All records are outside the span, in memory private to the owner: allocating and freeing
//! touch no shared page. Blocks of up to 32 KiB come from slabs, which belong to one thread's [`Cache`] each;
//! larger ones are runs of whole pages.
//!
//! This module never accesses the memory that it allocates: addresses are numbers.

mod bins;
mod cache;
mod class;
mod extents;
mod inbox;
mod layout;
mod slab;
mod slab_table;
mod supply;

pub use cache::Cache;
pub use class::GRAIN;
pub use layout::Layout;

use crate::PAGE_SIZE;
use extents::{Purpose, Run};
use gondwana_locks::lock;
use gondwana_topology::NodeId;
use layout::{Place, SLAB_BYTES};
use std::sync::Arc;
use supply::Supply;
use thiserror::Error;

/// Called with the addresses of a new slab, and true if they were never used before.
pub type SlabWatcher = fn(std::ops::Range<usize>, bool);

/// Memory just allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first address.
    pub address: usize,
    /// No byte of it was ever part of a block before: it still holds the zeros that the span began with.
    pub fresh: bool,
}

/// Why this node's heap refuses a request for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The address is in that node's part.
    #[error("the address is in the part of node {0}")]
    Remote(NodeId),
    /// The address is in this node's part, but no live block begins there: it was freed already or never
    /// allocated.
    #[error("no live block begins at the address")]
    Invalid,
    /// The address is in no part of the heap.
    #[error("the address is outside the heap")]
    Outside,
}

/// How much of a node's part is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages in large blocks, page ranges, and slabs outside the class regions.
    pub live_pages: usize,
    /// The number of free runs outside the class regions.
    pub free_runs: usize,
}

/// The heap of one node.
///
/// Threads allocate through a [`Cache`]; the functions here serve the requests of other nodes and whole pages, from
/// any thread.
#[derive(Debug)]
pub struct Heap {
    layout: Layout,
    me: NodeId,
    base: usize,
    supply: Supply,
}

impl Heap {
    /// The empty heap of node `me`.
    ///
    /// # Panics
    /// If the layout has no part for the node.
    #[must_use]
    pub fn new(layout: Layout, me: NodeId) -> Arc<Self> {
        assert!(me.index() < layout.nodes(), "node {me} has no part");
        let base = layout.part(me);
        Arc::new(Self { layout, me, base, supply: Supply::new(layout, base) })
    }

    /// How the addresses are divided.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The node whose heap this is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.me
    }

    /// Frees a block of this node's part without a cache: for a block that a thread of another node freed.
    ///
    /// # Errors
    /// If it is another node's or no live block begins there.
    pub fn free(&self, address: usize) -> Result<(), Refusal> {
        let freed = match self.supply.table.get(self.offset(address)?) {
            Some(slab) => slab.block_at(address).is_some_and(|block| self.supply.inboxes.put(slab, block)),
            None => {
                address.is_multiple_of(PAGE_SIZE)
                    && lock(&self.supply.extents).free_block(address / PAGE_SIZE)
            }
        };
        if freed { Ok(()) } else { Err(Refusal::Invalid) }
    }

    /// The usable bytes of a block.
    ///
    /// The address usually gives the size of another node's small block; then it is not checked that the block is
    /// live.
    ///
    /// # Errors
    /// If only its owner knows, or no block begins there.
    pub fn usable_size(&self, address: usize) -> Result<usize, Refusal> {
        let offset = match self.offset(address) {
            Err(Refusal::Remote(owner)) => return self.remote_size(address, owner),
            offset => offset?,
        };
        match self.supply.table.get(offset) {
            Some(slab) => {
                slab.block_at(address).filter(|&block| slab.is_live(block)).map(|_| slab.class().size())
            }
            None if address.is_multiple_of(PAGE_SIZE) => {
                lock(&self.supply.extents).block(address / PAGE_SIZE).map(|pages| pages * PAGE_SIZE)
            }
            None => None,
        }
        .ok_or(Refusal::Invalid)
    }

    /// Changes the size of a block if it can stay where it is; false if it has to move. Bytes that it gains need
    /// not be zero.
    ///
    /// # Errors
    /// If only its owner knows it, or no live block begins there.
    pub fn resize_in_place(&self, address: usize, size: usize) -> Result<bool, Refusal> {
        let usable = self.usable_size(address)?;
        let is_page_run = self.offset(address).is_ok_and(|offset| self.supply.table.get(offset).is_none());
        if !is_page_run {
            return Ok(size <= usable);
        }
        let pages = size.div_ceil(PAGE_SIZE).max(1);
        Ok(lock(&self.supply.extents).resize_block(address / PAGE_SIZE, pages))
    }

    /// Allocates `count` consecutive pages. `None` if there is no room or `count` is 0.
    pub fn allocate_pages(&self, count: usize) -> Option<Block> {
        if count == 0 {
            return None;
        }
        lock(&self.supply.extents).take(count, 1, Purpose::Pages).map(block)
    }

    /// Frees `count` pages from `address` on. All come from [`Heap::allocate_pages`], by one call or several; other
    /// pages of those calls stay.
    ///
    /// # Errors
    /// If they are another node's, or one of them is no such page; nothing is freed then.
    pub fn free_pages(&self, address: usize, count: usize) -> Result<(), Refusal> {
        self.offset(address)?;
        let freed = address.is_multiple_of(PAGE_SIZE)
            && lock(&self.supply.extents).free_pages(address / PAGE_SIZE, count);
        if freed { Ok(()) } else { Err(Refusal::Invalid) }
    }

    /// How much is in use outside the class regions.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let extents = lock(&self.supply.extents);
        Usage { live_pages: extents.live_pages(), free_runs: extents.free_runs() }
    }

    /// Allocates whole pages as a block, whatever its size; otherwise as [`Cache::allocate`].
    #[must_use]
    pub fn allocate_block(&self, size: usize, align: usize) -> Option<Block> {
        align.is_power_of_two().then(|| self.allocate_large(size, align))?
    }

    /// True if an address of this node's part is of whole pages, rather than of a slab.
    #[must_use]
    pub fn is_block(&self, address: usize) -> bool {
        self.offset(address).is_ok_and(|offset| self.supply.table.get(offset).is_none())
    }

    /// Calls `tell` for each new slab from now on: its addresses, and whether they are fresh. Must be called once.
    pub fn watch_slabs(&self, tell: SlabWatcher) {
        // A second watcher is ignored.
        let _ = self.supply.watcher.set(tell);
    }

    fn allocate_large(&self, size: usize, align: usize) -> Option<Block> {
        let pages = size.div_ceil(PAGE_SIZE).max(1);
        lock(&self.supply.extents).take(pages, align.div_ceil(PAGE_SIZE), Purpose::Block).map(block)
    }

    /// Where in this node's part an address is.
    #[inline]
    fn offset(&self, address: usize) -> Result<usize, Refusal> {
        let offset = address.wrapping_sub(self.base);
        if offset < self.layout.bytes_per_node() {
            return Ok(offset);
        }
        Err(self.layout.owner(address).map_or(Refusal::Outside, Refusal::Remote))
    }

    fn remote_size(&self, address: usize, owner: NodeId) -> Result<usize, Refusal> {
        let offset = address - self.layout.part(owner);
        match self.layout.place(offset) {
            // Blocks are contiguous in slabs, and a part begins at a slab boundary.
            Place::Region(class) if (offset % SLAB_BYTES).is_multiple_of(class.size()) => Ok(class.size()),
            Place::Region(_) => Err(Refusal::Invalid),
            Place::Rest => Err(Refusal::Remote(owner)),
        }
    }
}

fn block(run: Run) -> Block {
    Block { address: run.start * PAGE_SIZE, fresh: run.fresh }
}
