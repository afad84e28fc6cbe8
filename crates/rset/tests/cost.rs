//! Operations on the largest sets allocate nothing.

use gondwana_rset::{MemoryPolicy, Placement, RSet, ThreadPlan, ThreadPolicy};
use gondwana_topology::{Bytes, Machine, NodeId, NodeSet, ProcessorId};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::num::NonZeroU64;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all work is the system allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often something allocates.
fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    black_box(work());
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn operations_allocate_nothing() {
    let all = RSet::global(&Machine::uniform(64, 64, Bytes(1 << 34)));
    let even = RSet::new((0..4096).step_by(2).map(ProcessorId).collect(), NodeSet::only(NodeId(3)));
    assert_eq!(allocations(|| Box::new(1)), 1, "what is counted counts");
    assert_eq!(allocations(|| all.union(&even)), 0);
    assert_eq!(allocations(|| all.intersection(&even)), 0);
    assert_eq!(allocations(|| all.difference(&even)), 0);
    assert_eq!(allocations(|| (all.contains(&even), all.overlaps(&even), all == even, even.is_empty())), 0);
    assert_eq!(allocations(|| (even.processors().len(), even.resources().count())), 0);
}

#[test]
fn placing_a_page_or_a_thread_allocates_nothing() {
    let machine = Machine::uniform(64, 64, Bytes(1 << 34));
    let all = RSet::global(&machine);
    let striped = MemoryPolicy::Striped(NonZeroU64::MIN);
    for policy in [MemoryPolicy::Local, MemoryPolicy::Remote, striped, MemoryPolicy::Block] {
        let placement = Placement::new(policy, &all, &machine).unwrap();
        assert_eq!(allocations(|| placement.node_of(1 << 30, 1 << 40, NodeId(3))), 0);
        assert_eq!(allocations(|| placement.runs(1000, NodeId(3)).count()), 0);
    }
    let plan = ThreadPlan::new(ThreadPolicy::Fill, &all, &machine).unwrap();
    assert_eq!(allocations(|| plan.place_of(4095)), 0);
}
