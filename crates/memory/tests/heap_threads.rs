//! Threads of one node that allocate, and free each other's blocks.

use gondwana_memory::heap::{Cache, Heap, Layout};
use gondwana_topology::NodeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

const BASE: usize = 0x1000_0000_0000;
const GRAIN: usize = 16;
const THREADS: usize = 4;

/// Which granules of the heap are in use, to see two threads get the same.
struct Claims(Vec<AtomicBool>);

impl Claims {
    fn of(&self, address: usize, bytes: usize) -> &[AtomicBool] {
        let first = (address - BASE) / GRAIN;
        &self.0[first..first + bytes.div_ceil(GRAIN)]
    }

    fn claim(&self, address: usize, bytes: usize) {
        for granule in self.of(address, bytes) {
            assert!(!granule.swap(true, Ordering::AcqRel), "{address:#x} is in use");
        }
    }

    fn release(&self, address: usize, bytes: usize) {
        for granule in self.of(address, bytes) {
            assert!(granule.swap(false, Ordering::AcqRel), "{address:#x} is not in use");
        }
    }
}

/// Steps of a linear congruential generator: the same requests in every run, though not the same interleaving.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Each thread allocates blocks, keeps some, sends others round for the next thread to free, and now and then
/// starts anew with another cache. In the end everything has been freed.
fn exchange(heap: &Arc<Heap>, bytes: usize, rounds: usize, size: impl Fn(usize) -> usize + Sync) {
    let claims = Claims((0..bytes / GRAIN).map(|_| AtomicBool::new(false)).collect());
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| mpsc::channel::<(usize, usize)>()).unzip();
    std::thread::scope(|scope| {
        for (index, receiver) in receivers.into_iter().enumerate() {
            let to_next = senders[(index + 1) % THREADS].clone();
            let (claims, size) = (&claims, &size);
            scope.spawn(move || {
                let mut cache = Cache::new(heap);
                let mut random = index as u64;
                let mut kept = Vec::new();
                for round in 0..rounds {
                    let bytes = size(next(&mut random));
                    if let Some(block) = cache.allocate(bytes, 16) {
                        claims.claim(block.address, bytes);
                        if next(&mut random).is_multiple_of(2) {
                            kept.push((block.address, bytes));
                        } else {
                            to_next.send((block.address, bytes)).unwrap();
                        }
                    }
                    if kept.len() > 20 {
                        let (address, bytes) = kept.swap_remove(next(&mut random) % kept.len());
                        claims.release(address, bytes);
                        cache.free(address).unwrap();
                    }
                    for (address, bytes) in receiver.try_iter() {
                        claims.release(address, bytes);
                        cache.free(address).unwrap();
                    }
                    if round % 1000 == 999 {
                        cache = Cache::new(heap);
                    }
                }
                drop(to_next);
                for (address, bytes) in kept.into_iter().chain(receiver) {
                    claims.release(address, bytes);
                    heap.free(address).unwrap();
                }
            });
        }
        drop(senders);
    });
    assert!(claims.0.iter().all(|granule| !granule.load(Ordering::Relaxed)));
}

#[test]
fn threads_never_get_the_same_memory() {
    let bytes = 64 << 20;
    let heap = Heap::new(Layout::new(BASE, bytes, 1), NodeId(0));
    exchange(&heap, bytes, 20_000, |random| match random % 16 {
        0 => 30_000 + random % 50_000,
        1..4 => random % 5000,
        _ => random % 300,
    });
}

/// With one size there is a fixed number of blocks: none may be lost or doubled on the ways between threads.
#[test]
fn no_block_is_lost_between_threads() {
    let (slabs, size) = (8, 4096);
    let bytes = slabs << 16;
    let heap = Heap::new(Layout::new(BASE, bytes, 1), NodeId(0));
    for _ in 0..5 {
        exchange(&heap, bytes, 10_000, |_| size);
        let mut cache = Cache::new(&heap);
        let blocks: Vec<_> = std::iter::from_fn(|| cache.allocate(size, 16)).collect();
        assert_eq!(blocks.len(), bytes / size);
        blocks.iter().for_each(|block| cache.free(block.address).unwrap());
    }
}

/// Of all threads that free one block at the same time, at most one may succeed unless the memory is in use again.
#[test]
fn a_block_is_freed_by_one_thread_only() {
    let heap = Heap::new(Layout::new(BASE, 1 << 30, 1), NodeId(0));
    let mut cache = Cache::new(&heap);
    let freed = Mutex::new(Vec::new());
    let blocks: Vec<usize> = (0..5000).map(|_| cache.allocate(64, 16).unwrap().address).collect();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mine: Vec<usize> =
                    blocks.iter().copied().filter(|&address| heap.free(address).is_ok()).collect();
                freed.lock().unwrap().extend(mine);
            });
        }
    });
    let mut freed = freed.into_inner().unwrap();
    freed.sort_unstable();
    assert_eq!(freed, blocks);
}
