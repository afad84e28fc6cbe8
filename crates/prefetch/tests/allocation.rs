//! A prediction does not allocate: it is made in a fault handler, which may have interrupted the allocator.

use gondwana_prefetch::{Fault, Kind, Predictor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts what each thread allocates.
struct Counting;

// SAFETY: passes everything on to the system's allocator; a thread's counter needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How many times a call allocates.
fn allocations(call: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    call();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(7)))), 1);
}

#[test]
fn no_pattern_makes_a_prediction_allocate() {
    let mut predictor = Predictor::default();
    let mut predicted = 0;
    let count = allocations(|| {
        let kinds = [Kind::First, Kind::Read, Kind::Write, Kind::Upgrade];
        // Streams, 2-D strides, backwards, scattered and repeated faults, by more instructions than there are entries.
        let walks: [fn(u32) -> u32; 5] = [
            |n| n,
            |n| 5 + 16 * n,
            |n| 1 << 20 | (5_000 - n),
            |n| n.wrapping_mul(2_654_435_761) >> 8,
            |n| n % 7,
        ];
        for (number, walk) in walks.into_iter().cycle().take(40).enumerate() {
            for step in 0..200 {
                for kind in kinds {
                    let code = 0x40_1000 + 16 * number;
                    let fault = Fault { page: walk(step), code, kind, absent: step % 3 > 0 };
                    let prefetch = predictor.predict(fault, 127).prefetch;
                    predicted += prefetch.adjacent() as usize + prefetch.elsewhere(fault.page).count();
                }
            }
        }
    });
    assert_eq!(count, 0);
    assert!(predicted > 1000, "{predicted}: nothing was tried");
}
