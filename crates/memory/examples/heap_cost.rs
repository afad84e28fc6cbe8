//! Prints what allocating and freeing a block costs, in ns for each pair, for several sizes and orders.
//!
//! Run it in release mode: `cargo run --release -p gondwana-memory --example heap_cost`.

use gondwana_memory::heap::{Cache, Heap, Layout};
use gondwana_topology::NodeId;
use std::hint::black_box;
use std::time::Instant;

const PAIRS: usize = 1_000_000;

/// Allocates `batch` blocks, frees them from the first on, and so forth.
fn ns_per_pair(cache: &mut Cache, size: usize, batch: usize) -> Option<f64> {
    let mut blocks = Vec::with_capacity(batch);
    let start = Instant::now();
    for _ in 0..PAIRS / batch {
        for _ in 0..batch {
            blocks.push(cache.allocate(black_box(size), 16)?.address);
        }
        for address in blocks.drain(..) {
            cache.free(black_box(address)).ok()?;
        }
    }
    Some(start.elapsed().as_secs_f64() * 1e9 / PAIRS as f64)
}

fn main() {
    let heap = Heap::new(Layout::new(0x1000_0000_0000, 64 << 30, 1), NodeId(0));
    let mut cache = Cache::new(&heap);
    println!("{:>8} {:>10} {:>10} {:>10}", "size", "batch 1", "batch 100", "batch 10k");
    for size in [16, 64, 200, 1000, 8000, 32_000, 100_000] {
        print!("{size:>8}");
        for batch in [1, 100, 10_000] {
            match ns_per_pair(&mut cache, size, batch) {
                Some(ns) => print!(" {ns:>10.1}"),
                None => print!(" {:>10}", "no room"),
            }
        }
        println!();
    }
}
