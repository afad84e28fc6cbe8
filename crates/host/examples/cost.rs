//! What discovering this computer and placing memory cost: `cargo run --release -p gondwana-host --example cost`.

use gondwana_host::sys::{self, Policy};
use gondwana_host::{Extras, Region, allocate, discover, discover_nodes};
use gondwana_rset::{MemoryPolicy, Placement, RSet};
use std::num::NonZeroU64;
use std::time::Instant;

/// Milliseconds of the fastest of five times.
fn fastest(mut work: impl FnMut()) -> f64 {
    let mut time = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..5).map(|_| time()).fold(f64::MAX, f64::min)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const BYTES: usize = 1 << 30;
    println!("discover        {:8.2} ms", fastest(|| drop(discover())));
    println!("discover_nodes  {:8.2} ms", fastest(|| drop(discover_nodes())));
    let machine = discover_nodes()?;
    let rset = RSet::allowed(&machine);
    let nodes = *rset.memory();
    let kernel = fastest(|| {
        let region = Region::new(BYTES).expect("memory for the test");
        let addresses = region.addresses();
        sys::without_huge_pages(&addresses).expect("small pages");
        sys::set_policy_of(&addresses, &Policy::Interleave(nodes)).expect("a policy");
        (0..region.pages()).for_each(|page| region.touch(page));
    });
    println!("interleave 1 GiB{kernel:8.2} ms, by the kernel");
    let striped = |stride: NonZeroU64| -> Result<f64, Box<dyn std::error::Error>> {
        let placement = Placement::new(MemoryPolicy::Striped(stride), &rset, &machine)?;
        Ok(fastest(|| {
            let (_, placed) = allocate(BYTES, &placement, Extras::default()).expect("memory for the test");
            assert!(placed.is_as_asked());
        }))
    };
    for stride in [NonZeroU64::MIN, NonZeroU64::MIN.saturating_add(15)] {
        let time = striped(stride)?;
        println!("striped:{stride:<3} 1 GiB{time:8.2} ms, {:.2} x", time / kernel);
    }
    Ok(())
}
