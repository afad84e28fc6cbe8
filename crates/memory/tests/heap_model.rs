//! Random requests to the heaps of several nodes, compared with a plain list of what is in use.

use gondwana_memory::PAGE_SIZE;
use gondwana_memory::heap::{Block, Cache, Heap, Layout, Refusal};
use gondwana_topology::{Id, NodeId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const NODES: usize = 3;
const CACHES_PER_NODE: usize = 2;
const BASE: usize = 0x1000_0000_0000;

#[derive(Clone, Debug)]
enum Request {
    Allocate {
        cache: usize,
        size: usize,
        align_shift: u32,
    },
    /// Frees the block with a number, counted round, on behalf of a thread of a cache.
    Free {
        cache: usize,
        block: usize,
    },
    Resize {
        node: usize,
        block: usize,
        size: usize,
    },
    AllocatePages {
        node: usize,
        count: usize,
    },
    /// Frees pages of the range with a number, counted round, from the one on and so many.
    FreePages {
        range: usize,
        from: usize,
        count: usize,
    },
    Restart {
        cache: usize,
    },
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..300usize, 3 => 0..40_000usize, 1 => 30_000..300_000usize]
}

fn request() -> impl Strategy<Value = Request> {
    let cache = 0..NODES * CACHES_PER_NODE;
    let align_shift = prop_oneof![4 => Just(4u32), 1 => 0..17u32];
    prop_oneof![
        8 => (cache.clone(), size(), align_shift)
            .prop_map(|(cache, size, align_shift)| Request::Allocate { cache, size, align_shift }),
        7 => (cache.clone(), any::<usize>()).prop_map(|(cache, block)| Request::Free { cache, block }),
        2 => (0..NODES, any::<usize>(), size())
            .prop_map(|(node, block, size)| Request::Resize { node, block, size }),
        1 => (0..NODES, 1..40usize).prop_map(|(node, count)| Request::AllocatePages { node, count }),
        1 => (any::<usize>(), any::<usize>(), any::<usize>())
            .prop_map(|(range, from, count)| Request::FreePages { range, from, count }),
        1 => cache.prop_map(|cache| Request::Restart { cache }),
    ]
}

/// Disjoint ranges of addresses.
#[derive(Default)]
struct Ranges(BTreeMap<usize, usize>);

impl Ranges {
    fn meets(&self, start: usize, end: usize) -> bool {
        self.0.range(..end).next_back().is_some_and(|(_, &last)| last > start)
    }

    fn add(&mut self, mut start: usize, mut end: usize) {
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|&(_, &last)| last >= start)
        {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }
}

struct Model {
    layout: Layout,
    heaps: Vec<Arc<Heap>>,
    caches: Vec<Cache>,
    /// Live blocks and page ranges: first address and length.
    blocks: Vec<(usize, usize)>,
    ranges: Vec<(usize, usize)>,
    /// What was ever part of a block.
    touched: Ranges,
}

impl Model {
    fn new(bytes_per_node: usize) -> Self {
        let layout = Layout::new(BASE, bytes_per_node, NODES);
        let heaps: Vec<_> = (0..NODES).map(|node| Heap::new(layout, NodeId::from_index(node))).collect();
        let caches =
            (0..NODES * CACHES_PER_NODE).map(|cache| Cache::new(&heaps[cache / CACHES_PER_NODE])).collect();
        Self { layout, heaps, caches, blocks: Vec::new(), ranges: Vec::new(), touched: Ranges::default() }
    }

    fn owner(&self, address: usize) -> usize {
        self.layout.owner(address).expect("the address is in the heap").index()
    }

    /// Checks a new block of `length` bytes against all others.
    fn admit(&mut self, node: usize, block: Block, length: usize) {
        let (start, end) = (block.address, block.address + length);
        assert!(
            start >= self.layout.part(NodeId::from_index(node)) && length <= self.layout.bytes_per_node()
        );
        assert_eq!((self.owner(start), self.owner(end - 1)), (node, node), "in the node's part");
        for &(other, other_length) in self.blocks.iter().chain(&self.ranges) {
            assert!(end <= other || other + other_length <= start, "{start:#x} overlaps {other:#x}");
        }
        if block.fresh {
            assert!(!self.touched.meets(start, end), "{start:#x} is not fresh");
        }
        self.touched.add(start, end);
    }

    fn free_block(&mut self, cache: usize, index: usize) {
        let (address, _) = self.blocks.swap_remove(index);
        let owner = self.owner(address);
        let interior = self.caches[cache].free(address + 8);
        assert!(matches!(interior, Err(Refusal::Invalid | Refusal::Remote(_))), "{interior:?}");
        match self.caches[cache].free(address) {
            Ok(()) => assert_eq!(owner, cache / CACHES_PER_NODE),
            Err(Refusal::Remote(node)) => {
                assert_eq!(node.index(), owner);
                assert_ne!(owner, cache / CACHES_PER_NODE);
                assert_eq!(self.heaps[owner].free(address), Ok(()));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(self.heaps[owner].usable_size(address), Err(Refusal::Invalid), "it is free now");
        assert_eq!(self.heaps[owner].free(address), Err(Refusal::Invalid), "and cannot be freed again");
        assert_eq!(self.caches[owner * CACHES_PER_NODE].free(address), Err(Refusal::Invalid));
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::Allocate { cache, size, align_shift } => {
                let node = cache / CACHES_PER_NODE;
                let Some(block) = self.caches[cache].allocate(size, 1 << align_shift) else { return };
                let usable = self.heaps[node].usable_size(block.address).unwrap();
                assert!(
                    usable >= size.max(1)
                        && block.address.is_multiple_of(16 << align_shift.saturating_sub(4))
                );
                self.admit(node, block, usable);
                for heap in &self.heaps {
                    let seen = heap.usable_size(block.address);
                    assert!(
                        seen == Ok(usable) || seen == Err(Refusal::Remote(NodeId::from_index(node))),
                        "{seen:?}"
                    );
                }
                self.blocks.push((block.address, usable));
            }
            Request::Free { cache, block } if !self.blocks.is_empty() => {
                self.free_block(cache, block % self.blocks.len());
            }
            Request::Resize { node, block, size } if !self.blocks.is_empty() => {
                let index = block % self.blocks.len();
                let (address, usable) = self.blocks[index];
                let owner = self.owner(address);
                let resized = match self.heaps[node].resize_in_place(address, size) {
                    Err(Refusal::Remote(asked)) => {
                        assert_eq!((asked.index(), owner != node), (owner, true));
                        self.heaps[owner].resize_in_place(address, size)
                    }
                    resized => resized,
                };
                if resized.unwrap() {
                    let new = self.heaps[owner].usable_size(address).unwrap();
                    assert!(new >= size);
                    self.blocks.swap_remove(index);
                    self.admit(owner, Block { address, fresh: false }, new);
                    self.blocks.push((address, new));
                } else {
                    assert!(size > usable, "what fits can stay");
                    assert_eq!(self.heaps[owner].usable_size(address), Ok(usable));
                }
            }
            Request::AllocatePages { node, count } => {
                let Some(block) = self.heaps[node].allocate_pages(count) else { return };
                assert!(block.address.is_multiple_of(PAGE_SIZE));
                self.admit(node, block, count * PAGE_SIZE);
                self.ranges.push((block.address, count * PAGE_SIZE));
                assert_eq!(self.heaps[node].free(block.address), Err(Refusal::Invalid), "pages are no block");
            }
            Request::FreePages { range, from, count } if !self.ranges.is_empty() => {
                let (start, length) = self.ranges.swap_remove(range % self.ranges.len());
                let pages = length / PAGE_SIZE;
                let from = from % pages;
                let count = 1 + count % (pages - from);
                let (first, last) = (start + from * PAGE_SIZE, start + (from + count) * PAGE_SIZE);
                let heap = &self.heaps[self.owner(start)];
                assert_eq!(heap.free_pages(first, count), Ok(()));
                assert_eq!(heap.free_pages(first, count), Err(Refusal::Invalid));
                let left = [(start, first - start), (last, start + length - last)];
                self.ranges.extend(left.into_iter().filter(|&(_, length)| length > 0));
            }
            Request::Restart { cache } => {
                self.caches[cache] = Cache::new(&self.heaps[cache / CACHES_PER_NODE]);
            }
            Request::Free { .. } | Request::Resize { .. } | Request::FreePages { .. } => {}
        }
    }

    fn free_everything(&mut self) {
        while !self.blocks.is_empty() {
            self.free_block(self.blocks.len() % self.caches.len(), self.blocks.len() / 2);
        }
        for (start, length) in std::mem::take(&mut self.ranges) {
            assert_eq!(self.heaps[self.owner(start)].free_pages(start, length / PAGE_SIZE), Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// In parts with class regions, nothing is left outside them in the end, and that in one piece.
    #[test]
    fn requests_are_served_from_free_memory(requests in prop::collection::vec(request(), 1..400)) {
        let mut model = Model::new(1 << 30);
        requests.into_iter().for_each(|request| model.serve(request));
        model.free_everything();
        for heap in &model.heaps {
            let usage = heap.usage();
            prop_assert_eq!((usage.live_pages, usage.free_runs), (0, 1));
        }
    }

    /// Parts so small that class regions overflow or do not exist, and that requests go unserved.
    #[test]
    fn requests_are_served_when_room_is_short(
        requests in prop::collection::vec(request(), 1..400),
        bytes_per_node in prop_oneof![Just(1usize << 16), Just(1 << 20), Just(20 << 20)],
    ) {
        let mut model = Model::new(bytes_per_node);
        requests.into_iter().for_each(|request| model.serve(request));
        model.free_everything();
        for heap in &model.heaps {
            prop_assert_eq!(heap.usage().live_pages % 16, 0, "only whole slabs are left");
        }
    }
}

fn one_node(bytes: usize) -> (Arc<Heap>, Cache) {
    let heap = Heap::new(Layout::new(BASE, bytes, 1), NodeId(0));
    let cache = Cache::new(&heap);
    (heap, cache)
}

#[test]
fn memory_is_fresh_once() {
    let (heap, mut cache) = one_node(1 << 30);
    for size in [1, 100, 5000, 32 << 10, 100_000, 10 << 20] {
        let first = cache.allocate(size, 16).unwrap();
        let second = cache.allocate(size, 16).unwrap();
        assert!(first.fresh && second.fresh, "{size}");
        cache.free(first.address).unwrap();
        assert_eq!(cache.allocate(size, 16), Some(Block { fresh: false, ..first }), "{size}");
    }
    assert!(heap.allocate_pages(3).unwrap().fresh);
}

#[test]
fn threads_have_pages_of_their_own() {
    let (heap, mut one) = one_node(1 << 30);
    let mut other = Cache::new(&heap);
    let pages = |cache: &mut Cache| -> Vec<usize> {
        (0..3000).map(|round| cache.allocate(round % 200, 16).unwrap().address / PAGE_SIZE).collect()
    };
    let (one, other) = (pages(&mut one), pages(&mut other));
    assert!(one.iter().all(|page| !other.contains(page)));
}

#[test]
fn a_new_thread_takes_over_what_a_finished_one_left() {
    let (heap, mut cache) = one_node(1 << 30);
    let kept = cache.allocate(4096, 16).unwrap().address;
    drop(cache);
    let mut heir = Cache::new(&heap);
    assert_eq!(heir.allocate(4096, 16).unwrap().address, kept + 4096);
    // A thread that lives on takes over only once it has no room of its own.
    let mut other = Cache::new(&heap);
    let far = other.allocate(4096, 16).unwrap().address;
    assert_ne!(far >> 16, kept >> 16);
    drop(heir);
    for _ in 0..15 {
        assert_eq!(other.allocate(4096, 16).unwrap().address >> 16, far >> 16);
    }
    assert_eq!(other.allocate(4096, 16).unwrap().address, kept + 2 * 4096);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let (heap, mut cache) = one_node(1 << 20);
    assert_eq!(cache.allocate(1 << 21, 16), None);
    assert_eq!(cache.allocate(usize::MAX, 16), None);
    assert_eq!(cache.allocate(16, 1 << 60), None);
    assert_eq!(cache.allocate(16, 24), None, "no power of two");
    assert_eq!(heap.allocate_pages(0), None);
    assert_eq!(heap.allocate_pages(usize::MAX), None);
    assert_eq!(cache.free(BASE - 16), Err(Refusal::Outside));
    assert_eq!(cache.free(BASE + (1 << 20)), Err(Refusal::Outside));
    assert_eq!(cache.free(BASE), Err(Refusal::Invalid));
    assert_eq!(heap.free_pages(BASE, usize::MAX), Err(Refusal::Invalid));
    let all = cache.allocate(1 << 20, 16).unwrap();
    assert_eq!(cache.allocate(1, 1), None);
    assert_eq!(cache.free(all.address), Ok(()));
    assert!(cache.allocate(1, 1).is_some());
}
