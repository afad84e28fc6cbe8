//! The heap cache of one thread.

use super::bins::Bins;
use super::class::{Class, MAX_SMALL};
use super::{Block, Heap, Refusal};
use std::sync::Arc;

/// The slabs from which one thread allocates.
///
/// A slab belongs to one cache at a time, so small blocks of different threads are on different pages, unless a
/// thread takes over the slabs of a finished one. Any cache of the node can free any block of the node's part. The
/// fast paths without a lock are separate functions ([`Cache::allocate_at_hand`], [`Cache::free_at_hand`]): a caller
/// that may be interrupted, as by a fault on its own stack, must not hold a lock then.
///
/// Dropping the cache leaves its slabs to the next one; its blocks stay valid.
#[derive(Debug)]
pub struct Cache {
    heap: Arc<Heap>,
    /// `None` only while the cache is being dropped.
    bins: Option<Bins>,
}

impl Cache {
    /// A cache of the heap, for one thread.
    #[must_use]
    pub fn new(heap: &Arc<Heap>) -> Self {
        Self { heap: Arc::clone(heap), bins: Some(heap.supply.bins()) }
    }

    /// The heap it belongs to.
    #[must_use]
    pub fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    /// As [`Cache::allocate`], without a lock; `None` if a lock is necessary.
    #[inline]
    pub fn allocate_at_hand(&mut self, size: usize, align: usize) -> Option<Block> {
        if size > MAX_SMALL || !align.is_power_of_two() {
            return None;
        }
        let taken = self.bins.as_mut()?.take(Class::fitting(size, align)?)?;
        Some(Block { address: taken.address, fresh: taken.fresh })
    }

    /// Allocates at least `size` bytes (also of 0) at a multiple of `align` and of 16.
    ///
    /// `None` if this node's part has no room or `align` is no power of two.
    #[inline]
    pub fn allocate(&mut self, size: usize, align: usize) -> Option<Block> {
        self.allocate_at_hand(size, align).or_else(|| self.allocate_with_locks(size, align))
    }

    #[cold]
    fn allocate_with_locks(&mut self, size: usize, align: usize) -> Option<Block> {
        if !align.is_power_of_two() {
            return None;
        }
        if size <= MAX_SMALL
            && let Some(class) = Class::fitting(size, align)
        {
            let taken = self.bins.as_mut()?.refill_and_take(class, &self.heap.supply)?;
            return Some(Block { address: taken.address, fresh: taken.fresh });
        }
        self.heap.allocate_large(size, align)
    }

    /// As [`Cache::free`], without a lock; false if a lock is necessary, or the block cannot be freed at all.
    #[inline]
    pub fn free_at_hand(&mut self, address: usize) -> bool {
        let Ok(offset) = self.heap.offset(address) else { return false };
        let (Some(slab), Some(bins)) = (self.heap.supply.table.get(offset), self.bins.as_mut()) else {
            return false;
        };
        slab.block_at(address).is_some_and(|block| bins.put_at_hand(slab, block))
    }

    /// Frees a block of this node's part.
    ///
    /// # Errors
    /// If it is another node's, which must then [`Heap::free`] it, or no live block begins there.
    #[inline]
    pub fn free(&mut self, address: usize) -> Result<(), Refusal> {
        if self.free_at_hand(address) { Ok(()) } else { self.free_with_locks(address) }
    }

    #[cold]
    fn free_with_locks(&mut self, address: usize) -> Result<(), Refusal> {
        let offset = self.heap.offset(address)?;
        let Some(slab) = self.heap.supply.table.get(offset) else { return self.heap.free(address) };
        let block = slab.block_at(address).ok_or(Refusal::Invalid)?;
        let own = self.bins.as_mut().and_then(|bins| bins.put(slab, block, &self.heap.supply));
        let freed = own.unwrap_or_else(|| self.heap.supply.inboxes.put(slab, block));
        if freed { Ok(()) } else { Err(Refusal::Invalid) }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(bins) = self.bins.take() {
            self.heap.supply.retire(bins);
        }
    }
}
