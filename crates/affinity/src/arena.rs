//! The memory of one rule.
//!
//! A range of addresses is reserved for it. The heap of cluster nodes allocates in the range: small blocks share
//! slabs, large ones are whole pages, and all metadata is elsewhere. A slab gets memory with its first block, and
//! keeps it; a large block has memory from its allocation until it is freed.

use crate::reservation::reserve;
use crate::{fork, message};
use gondwana_host::pages::{self, Found};
use gondwana_host::{AnonymousMemory, Extras, MallocPlan, Placed, UnmetRequest, place_untouched, sys};
use gondwana_locks::lock;
use gondwana_memory::PAGE_SIZE;
use gondwana_memory::heap::{Cache, Heap, Layout};
use gondwana_page::to_usize;
use gondwana_rset::{MemoryPolicy, Placement, RSet};
use gondwana_topology::{Id, Machine, NodeId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The bytes of a slab of the heap.
const SLAB: usize = 64 << 10;
/// The largest blocks, and the largest alignments, for which the heap uses slabs.
const MOST_SMALL: usize = 32 << 10;
/// The smallest huge page: blocks of at least this size are aligned to it.
const HUGE: usize = 2 << 20;

pub(crate) struct Arena {
    /// The user's text of it.
    rule: String,
    addresses: Range<usize>,
    heap: Arc<Heap>,
    /// One cache of the heap for each node with processors, so that threads of different nodes do not share pages of
    /// small blocks.
    caches: Vec<Mutex<Cache>>,
    /// The cache for the threads on each processor.
    cache_of: Vec<u8>,
    /// A bit for each slab that has memory.
    slabs: Box<[AtomicU64]>,
    /// The bytes of each large block.
    large: Mutex<BTreeMap<usize, usize>>,
    placement: Placement,
    extras: Extras,
    page_counts: Mutex<PageCounts>,
    /// True if pages are to be counted when blocks are freed.
    counts: bool,
    has_complained: AtomicBool,
}

/// Counts of an arena's requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageCounts {
    /// Allocations.
    pub calls: u64,
    /// Bytes in all of them.
    pub bytes: u64,
    /// Pages that were to be on each node, or on any of several (`absent`).
    pub asked: Found,
    /// Where the pages of large blocks were when they were freed.
    pub found: Found,
    /// Pages with requested colours, and those of them that got them.
    pub colours: (usize, usize),
}

/// Memory just allocated.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub address: usize,
    /// Its memory is zero.
    pub fresh: bool,
}

impl Arena {
    /// The arena of a rule with this policy; `None` if the policy is impossible on this computer.
    pub(crate) fn new(
        rule: &str,
        memory: MemoryPolicy,
        rset: &RSet,
        machine: &Machine,
        plan: &MallocPlan,
    ) -> Option<Self> {
        let placement = Placement::new(memory, rset, machine).ok()?;
        let total: u64 = machine.nodes.iter().map(|node| node.memory.total.0).sum();
        let bytes = to_usize(total).saturating_mul(2).clamp(64 << 30, 16 << 40).next_power_of_two();
        let addresses = reserve(bytes, rule).ok()?;
        let heap = Heap::new(Layout::new(addresses.start, addresses.len(), 1), NodeId(0));
        let mut cache_of = vec![];
        let with_processors = machine.nodes.iter().filter(|node| !node.processors.is_empty());
        let mut caches = vec![];
        for (number, node) in with_processors.enumerate() {
            let number = u8::try_from(number).ok()?;
            caches.push(Mutex::new(Cache::new(&heap)));
            for processor in node.processors.iter().map(Id::index) {
                cache_of.resize(cache_of.len().max(processor + 1), 0);
                cache_of[processor] = number;
            }
        }
        let slabs = addresses.len() / SLAB / 64;
        // SAFETY: zeros are atomic zeros. They are not written, because there are many.
        let slabs = unsafe { Box::<[AtomicU64]>::new_zeroed_slice(slabs).assume_init() };
        Some(Self {
            rule: rule.to_owned(),
            addresses,
            heap,
            caches,
            cache_of,
            slabs,
            large: Mutex::default(),
            placement,
            extras: plan.extras,
            page_counts: Mutex::default(),
            counts: plan.report.is_some(),
            has_complained: AtomicBool::new(false),
        })
    }

    /// True if an address is in this arena.
    #[inline]
    pub(crate) fn has(&self, address: usize) -> bool {
        self.addresses.contains(&address)
    }

    /// Allocates a block; `None` if there is no room. The alignment is a power of two.
    pub(crate) fn allocate(&self, bytes: usize, alignment: usize) -> Option<Block> {
        let _forks = fork::keep_waiting();
        let block = if bytes <= MOST_SMALL && alignment <= MOST_SMALL {
            self.allocate_small(bytes, alignment)
        } else {
            self.allocate_large(bytes, alignment)
        }?;
        let mut page_counts = lock(&self.page_counts);
        page_counts.calls += 1;
        page_counts.bytes += bytes as u64;
        Some(block)
    }

    fn allocate_small(&self, bytes: usize, alignment: usize) -> Option<Block> {
        let mut cache = self.cache();
        let block = cache.allocate(bytes, alignment)?;
        let slab = self.slab(block.address);
        if !self.is_slab(slab) {
            let start = self.addresses.start + slab * SLAB;
            // Colours in row need many pages.
            let extras = Extras { colours: None, ..self.extras };
            let before = match self.placement.policy() {
                MemoryPolicy::Striped(_) => slab * (SLAB / PAGE_SIZE),
                _ => 0,
            };
            if !self.furnish(start..start + SLAB, before, extras) {
                let _ = cache.free(block.address);
                return None;
            }
            self.slabs[slab / 64].fetch_or(1 << (slab % 64), Ordering::Release);
        }
        Some(Block { address: block.address, fresh: block.fresh })
    }

    fn allocate_large(&self, bytes: usize, alignment: usize) -> Option<Block> {
        let length = bytes.max(1).checked_next_multiple_of(PAGE_SIZE)?;
        let alignment = if length >= HUGE { alignment.max(HUGE) } else { alignment };
        // Larger than any small block of the heap.
        let block = self.cache().allocate(length.max(MOST_SMALL + 1), alignment.max(PAGE_SIZE))?;
        if !self.furnish(block.address..block.address + length, 0, self.extras) {
            let _ = self.cache().free(block.address);
            return None;
        }
        lock(&self.large).insert(block.address, length);
        Some(Block { address: block.address, fresh: true })
    }

    /// Maps memory by the policy at some addresses; false if there is none.
    fn furnish(&self, addresses: Range<usize>, before: usize, extras: Extras) -> bool {
        // SAFETY: the addresses are reserved for this arena, and the heap has just given them out.
        let Ok(region) = (unsafe { AnonymousMemory::renewed(addresses) }) else { return false };
        let placed = place_untouched(&region, &self.placement, before as u64, extras);
        let pages = region.pages();
        let _ = region.into_addresses();
        self.complain(&placed);
        let mut page_counts = lock(&self.page_counts);
        for (node, pages) in &placed.asked.pages {
            *page_counts.asked.pages.entry(*node).or_default() += pages;
        }
        page_counts.asked.absent += pages - placed.asked.present();
        if extras.colours.is_some() {
            page_counts.colours.0 += pages;
            page_counts.colours.1 += placed.colours.map_or(0, |colours| colours.in_order);
        }
        true
    }

    /// Reports once that memory is not placed as requested. The launcher has reported what the kernel refuses.
    fn complain(&self, placed: &Placed) {
        let mut remarks =
            placed.remarks.iter().filter(|remark| !matches!(remark, UnmetRequest::Refused { .. }));
        if let Some(remark) = remarks.next()
            && !self.has_complained.swap(true, Ordering::Relaxed)
        {
            message::say(&format!("{}: {remark}", self.rule));
        }
    }

    /// Frees a block; false if none begins there.
    pub(crate) fn free(&self, address: usize) -> bool {
        let _forks = fork::keep_waiting();
        if self.is_slab(self.slab(address)) {
            return self.cache().free(address).is_ok();
        }
        let Some(length) = lock(&self.large).remove(&address) else { return false };
        let addresses = address..address + length;
        if self.counts
            && let Ok(found) = pages::count(0, addresses.clone())
        {
            add(&mut lock(&self.page_counts).found, &found);
        }
        // Memory that cannot be returned now is replaced when the addresses are used again.
        // SAFETY: the addresses were the block's, which the program does not use any more.
        let _ = unsafe { AnonymousMemory::vacate(addresses) };
        self.cache().free(address).is_ok()
    }

    /// How many bytes may be used from the beginning of a block on; `None` if none begins there.
    pub(crate) fn usable(&self, address: usize) -> Option<usize> {
        let _forks = fork::keep_waiting();
        if self.is_slab(self.slab(address)) {
            return self.heap.usable_size(address).ok();
        }
        lock(&self.large).get(&address).copied()
    }

    /// Requested pages, and the nodes where all pages are or were.
    pub(crate) fn page_counts(&self) -> PageCounts {
        let mut page_counts = lock(&self.page_counts).clone();
        let slabs = (0..self.slabs.len() * 64).step_by(64).flat_map(|first| {
            let bits = self.slabs[first / 64].load(Ordering::Acquire);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| first + bit)
        });
        let slabs = slabs.map(|slab| self.addresses.start + slab * SLAB).map(|start| start..start + SLAB);
        let large = lock(&self.large).clone();
        for range in slabs.chain(large.into_iter().map(|(start, length)| start..start + length)) {
            if let Ok(found) = pages::count(0, range) {
                add(&mut page_counts.found, &found);
            }
        }
        page_counts
    }

    /// The way to the heap for the calling thread.
    fn cache(&self) -> MutexGuard<'_, Cache> {
        let processor = sys::here().map_or(0, |(processor, _)| processor.index());
        lock(&self.caches[usize::from(self.cache_of.get(processor).copied().unwrap_or(0))])
    }

    fn slab(&self, address: usize) -> usize {
        (address - self.addresses.start) / SLAB
    }

    fn is_slab(&self, slab: usize) -> bool {
        self.slabs[slab / 64].load(Ordering::Acquire) >> (slab % 64) & 1 == 1
    }
}

fn add(sum: &mut Found, more: &Found) {
    for (node, pages) in &more.pages {
        *sum.pages.entry(*node).or_default() += pages;
    }
    sum.absent += more.absent;
}
