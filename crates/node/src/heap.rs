//! `malloc` for the whole machine: each node allocates from its own part of the span.

use crate::heap_apart::Apart;
use crate::wire::Wire;
use crate::{Caller, Node, Thread};
use gondwana_locks::lock;
use gondwana_memory::heap::{Block, Cache, Heap, Refusal};
use gondwana_memory::{Access, PAGE_SIZE};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Blocks freed here that belong to other nodes' parts, until this node's next release.
///
/// The owner may hand a block out again as soon as it knows, so it must not know before what was written to the
/// block here has reached the block's homes.
#[derive(Default)]
pub(crate) struct FreedElsewhere {
    /// There are any; so that the many releases before which nothing was freed do without the lock.
    any: AtomicBool,
    blocks: Mutex<Vec<(NodeId, u64)>>,
}

/// The most freed blocks that one message to their owner names.
const MOST_IN_MESSAGE: usize = 4096;

impl FreedElsewhere {
    fn add(&self, owner: NodeId, address: u64) {
        lock(&self.blocks).push((owner, address));
        self.any.store(true, Ordering::Relaxed);
    }

    /// Takes the blocks, by owner. What other threads add meanwhile waits for their own releases.
    pub(crate) fn take(&self) -> Vec<(NodeId, Vec<u64>)> {
        let mut lists: Vec<(NodeId, Vec<u64>)> = vec![];
        if !self.any.load(Ordering::Relaxed) {
            return lists;
        }
        let mut blocks = lock(&self.blocks);
        self.any.store(false, Ordering::Relaxed);
        blocks.sort_unstable();
        for (owner, address) in blocks.drain(..) {
            match lists.last_mut() {
                Some((last, list)) if *last == owner && list.len() < MOST_IN_MESSAGE => list.push(address),
                _ => lists.push((owner, vec![address])),
            }
        }
        lists
    }
}

/// The node in whose part of the span the library's page is.
const LIBRARY_PAGE_OWNER: NodeId = NodeId(0);

/// The first page that the owner gives out, before all others: every node can compute where it is.
fn library_page(heap: &Heap) -> usize {
    heap.layout().rest(LIBRARY_PAGE_OWNER)
}

/// The heap as this node sees it.
pub(crate) struct SharedHeap {
    heap: Arc<Heap>,
    pub(crate) freed_elsewhere: FreedElsewhere,
    /// Blocks that are not packed, if some are.
    apart: Option<Apart>,
}

impl SharedHeap {
    /// With `apart`, small blocks that threads of several nodes may use at the same time are not packed.
    pub(crate) fn new(heap: Arc<Heap>, apart: bool) -> Self {
        if heap.node() == LIBRARY_PAGE_OWNER {
            let page = heap.allocate_pages(1).map(|block| block.address);
            debug_assert_eq!(page, Some(library_page(&heap)), "the first one to be given out");
        }
        Self { heap, freed_elsewhere: FreedElsewhere::default(), apart: apart.then(Apart::new) }
    }

    /// A thread's share of the heap, made with the first use.
    fn with_share<R>(&self, share: &RefCell<Option<Cache>>, with: impl FnOnce(&mut Cache) -> R) -> R {
        // A signal handler of the program may have interrupted this very thread inside the allocator.
        let Ok(mut cache) = share.try_borrow_mut() else { return with(&mut Cache::new(&self.heap)) };
        with(cache.get_or_insert_with(|| Cache::new(&self.heap)))
    }
}

impl Deref for SharedHeap {
    type Target = Heap;

    #[inline]
    fn deref(&self) -> &Heap {
        &self.heap
    }
}

impl Node {
    /// Takes the heap's locks, of this node's part and of the lists beside it, where nothing can stop the thread midway.
    ///
    /// Whoever receives messages takes them, too. A thread that held one while it waited for a page of its own stack
    /// could not get it: it would be the receiver, or the receiver would wait for it.
    pub(crate) fn undisturbed<R>(&self, call: impl FnOnce() -> R + 'static) -> R {
        self.privately(move || Thread::in_runtime(call))
    }

    /// The calling thread's share of the heap, with the locks of the heap.
    fn with_cache<R>(&'static self, with: impl FnOnce(&mut Cache) -> R + 'static) -> R {
        let thread = Thread::current(self);
        self.undisturbed(move || self.heap.with_share(&thread.cache, with))
    }

    /// Allocates a small block on pages of this node. Slabs that threads have left may be on others.
    fn take_local_block(&'static self, size: usize, align: usize) -> Option<Block> {
        let thread = Thread::current(self);
        self.undisturbed(move || {
            let before = thread.takes_local_slabs.replace(true);
            let block = self.heap.with_share(&thread.local_cache, |cache| cache.allocate(size, align));
            thread.takes_local_slabs.set(before);
            block
        })
    }

    /// What the calling thread's share of the heap can do without a lock; `None` if it has none yet.
    #[inline]
    fn at_hand<R>(&'static self, with: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        Some(with(Thread::current(self).cache.try_borrow_mut().ok()?.as_mut()?))
    }

    /// Allocates shared memory; `None` when this node's part of the span is used up.
    pub fn allocate(&'static self, size: usize, align: usize, caller: Caller) -> Option<usize> {
        self.allocate_for(size, align, caller).map(|block| block.address)
    }

    fn allocate_for(&'static self, size: usize, align: usize, caller: Caller) -> Option<Block> {
        let block = self.take_block(size, align, caller)?;
        self.note_allocation(block.address, size, caller, false);
        Some(block)
    }

    fn take_block(&'static self, size: usize, align: usize, caller: Caller) -> Option<Block> {
        if let Some(rule) = self.rule_for(caller.address, size) {
            if rule.is_local_and_small(size.max(align)) {
                return self.take_local_block(size, align);
            }
            let block = self.undisturbed(move || self.heap.allocate_block(size, align))?;
            return Some(self.place_block(block, size, Some(rule)));
        }
        if self.heap.apart.as_ref().is_some_and(|apart| apart.takes(caller.address, size)) {
            let block = self.undisturbed(move || self.heap.allocate_block(size, align))?;
            return Some(self.place_block(block, size, None));
        }
        if let Some(block) = self.at_hand(|cache| cache.allocate_at_hand(size, align)).flatten() {
            return Some(block);
        }
        let block = self.with_cache(move |cache| cache.allocate(size, align))?;
        let whole_pages = self.placement.placer.is_some() && self.heap.is_block(block.address);
        Some(if whole_pages { self.place_block(block, size, None) } else { block })
    }

    /// For the monitor: this memory is the caller's now, or is now so long.
    #[inline]
    pub fn note_allocation(&'static self, address: usize, bytes: usize, caller: Caller, mapping: bool) {
        if let Some(attribution) = self.monitor.attribution() {
            attribution.allocated(self, address, bytes, caller, mapping);
        }
    }

    /// Allocates shared memory that reads as zero.
    pub fn allocate_zeroed(&'static self, size: usize, caller: Caller) -> Option<usize> {
        let Block { address, fresh } = self.allocate_for(size, 16, caller)?;
        if !fresh {
            // SAFETY: the block was just allocated for this caller and is `size` bytes long.
            unsafe { self.clear_again(address..address + size) };
        }
        Some(address)
    }

    /// Frees a block, whichever node it came from. Ends the program if there is no such block, as natively.
    pub fn free(&'static self, address: usize) {
        if self.at_hand(|cache| cache.free_at_hand(address)) == Some(true) {
            return;
        }
        match self.with_cache(move |cache| cache.free(address)) {
            Ok(()) => {}
            Err(Refusal::Remote(owner)) => self.undisturbed(move || {
                self.heap.freed_elsewhere.add(owner, address as u64);
            }),
            Err(refusal) => invalid_free(address, refusal),
        }
    }

    /// How many bytes of a block the program may use.
    pub fn usable_size(&'static self, address: usize) -> usize {
        match self.undisturbed(move || self.heap.usable_size(address)) {
            Ok(size) => size,
            Err(Refusal::Remote(owner)) => {
                let address = address as u64;
                let size = self.ask(owner, move |ticket| Wire::UsableSize { ticket, address });
                usize::try_from(size).unwrap_or(0)
            }
            Err(_) => 0,
        }
    }

    /// Allocates whole pages that read as zero, as for an anonymous mapping.
    pub fn map_pages(&'static self, bytes: usize, caller: Caller) -> Option<usize> {
        let block = self.take_pages(bytes)?;
        let Block { address, fresh } = self.place_block(block, bytes, self.rule_for(caller.address, bytes));
        if !fresh {
            // SAFETY: the pages were just allocated for this caller.
            unsafe { self.clear_again(address..address + bytes.next_multiple_of(PAGE_SIZE)) };
        }
        Some(address)
    }

    /// Allocates whole pages for a stack, which may hold anything.
    pub fn reserve_pages(&'static self, bytes: usize) -> Option<usize> {
        let block = self.take_pages(bytes)?;
        self.unplace_block(block, bytes);
        Some(block.address)
    }

    /// The page of the span where the library around the node keeps state of its own that all nodes share. At first
    /// it is all zero.
    #[must_use]
    pub fn library_page(&self) -> usize {
        library_page(&self.heap)
    }

    fn take_pages(&'static self, bytes: usize) -> Option<Block> {
        self.undisturbed(move || self.heap.allocate_pages(bytes.div_ceil(PAGE_SIZE)))
    }

    /// Gives whole pages back. Pages of another node's part stay reserved: unmapping memory that another node
    /// mapped is too rare to be worth a message.
    pub fn unmap_pages(&'static self, address: usize, bytes: usize) {
        self.undisturbed(move || {
            let _ = self.heap.free_pages(address, bytes.div_ceil(PAGE_SIZE));
        });
    }

    /// Leaves a hole in place of whole pages, for something that is to be private to this node; false if the kernel
    /// refuses.
    ///
    /// # Safety
    /// The pages are of the span, and nobody uses them.
    pub unsafe fn exclude_pages(&'static self, addresses: Range<usize>) -> bool {
        let Some(pages) = self.page_range(&addresses) else { return false };
        // SAFETY: the caller's promise.
        self.privately(move || unsafe { self.core().env.pages.exclude(pages).is_ok() })
    }

    /// Shares whole pages that were excluded again, in place of what is there now. Their contents may be anything.
    ///
    /// # Safety
    /// Nobody uses what is there now.
    pub unsafe fn include_pages(&'static self, addresses: Range<usize>) -> bool {
        let Some(pages) = self.page_range(&addresses) else { return false };
        // SAFETY: the caller's promise.
        self.privately(move || unsafe { self.core().env.pages.include(pages).is_ok() })
    }

    /// The program wants this protection of shared pages. False if that is between it and the kernel.
    ///
    /// # Errors
    /// An error number.
    pub fn protect_pages(&'static self, addresses: Range<usize>, protection: i32) -> Result<bool, i32> {
        let Some(pages) = self.page_range(&addresses) else { return Ok(false) };
        let limit = if protection & libc::PROT_WRITE != 0 {
            Access::Write
        } else if protection & (libc::PROT_READ | libc::PROT_EXEC) != 0 {
            Access::Read
        } else {
            Access::None
        };
        let (count, executable) = (pages.end - pages.start, protection & libc::PROT_EXEC != 0);
        self.privately(move || self.core().env.pages.limit(pages.start, count, limit, executable))
            .map_err(|_| libc::ENOMEM)
    }

    fn page_range(&self, addresses: &Range<usize>) -> Option<Range<u32>> {
        Some(self.geometry.page_of(addresses.start)?..self.geometry.page_of(addresses.end - 1)? + 1)
    }

    /// The share of a thread that ends goes to the next one.
    pub(crate) fn return_cache(&self, cache: Cache) {
        self.undisturbed(move || drop(cache));
    }

    /// Another node freed blocks of this node's part.
    pub(crate) fn freed_by_peer(&'static self, addresses: &[u64]) {
        for address in addresses.iter().copied().map(to_usize) {
            self.unplace_freed(address);
            if let Err(refusal) = self.heap.free(address) {
                invalid_free(address, refusal);
            }
        }
    }
}

/// Ends the program by SIGABRT, as the C library does.
fn invalid_free(address: usize, refusal: Refusal) -> ! {
    let line = format!("gondwana: free({address:#x}): {refusal}\n");
    // By system call: the function of that name is the program's, and may not be called while messages are handled.
    // SAFETY: the buffer is valid for its length; `abort` ends the process unless a handler of the program does.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_write, 2, line.as_ptr(), line.len());
        libc::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_memory::heap::Layout;

    #[test]
    fn blocks_of_other_nodes_wait_by_owner_for_the_next_release() {
        let freed = FreedElsewhere::default();
        assert_eq!(freed.take(), []);
        for (owner, address) in [(2, 0x20), (1, 0x10), (2, 0x28)] {
            freed.add(NodeId(owner), address);
        }
        assert_eq!(freed.take(), [(NodeId(1), vec![0x10]), (NodeId(2), vec![0x20, 0x28])]);
        assert_eq!(freed.take(), []);
    }

    #[test]
    fn one_message_names_no_more_blocks_than_fit() {
        let freed = FreedElsewhere::default();
        (0..5000).for_each(|block| freed.add(NodeId(1), block));
        let counts: Vec<usize> = freed.take().iter().map(|(_, blocks)| blocks.len()).collect();
        assert_eq!(counts, [4096, 904]);
    }

    #[test]
    fn the_page_of_the_library_is_given_to_nobody_else() {
        let layout = Layout::new(1 << 40, 1 << 30, 2);
        let heaps = [0, 1].map(|node| SharedHeap::new(Heap::new(layout, NodeId(node)), false));
        let [first, second] = heaps.each_ref().map(|heap| library_page(heap));
        assert_eq!(first, second);
        assert!(heaps[0].is_block(first));
        assert_eq!(heaps[0].allocate_pages(1).map(|block| block.address), Some(first + PAGE_SIZE));
    }

    #[test]
    fn a_share_in_use_is_left_alone() {
        let heap = SharedHeap::new(Heap::new(Layout::new(1 << 40, 1 << 30, 2), NodeId(0)), false);
        let share = RefCell::new(None);
        heap.with_share(&share, |_| {
            // As a signal handler would that interrupts the allocator.
            heap.with_share(&share, |_| assert!(share.try_borrow().is_err()));
        });
        assert!(share.borrow().is_some());
    }
}
