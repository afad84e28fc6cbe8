//! What discovering this computer and placing memory cost: `cargo run --release -p gondwana-host --example placement_cost [MIB]`.
//!
//! Each round interleaves so much memory (1 GiB if nothing is said) by the kernel's policy, touched page by page, and
//! then allocates as much in stripes. Ratios are of times in one round, because computers are busy now and then; what is
//! printed is the median of the rounds.

use gondwana_host::sys::{self, Policy};
use gondwana_host::{AnonymousMemory, Extras, allocate, discover, discover_nodes};
use gondwana_rset::{MemoryPolicy, Placement, RSet};
use gondwana_topology::NodeSet;
use std::error::Error;
use std::num::NonZeroU64;
use std::time::Instant;

const ROUNDS: usize = 9;

/// Milliseconds that some work takes.
fn time(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The kernel's own interleaving.
fn interleave(bytes: usize, nodes: NodeSet) {
    let region = AnonymousMemory::new(bytes).expect("memory for the test");
    let addresses = region.addresses();
    sys::without_huge_pages(&addresses).expect("small pages");
    sys::set_policy_of(&addresses, &Policy::Interleave(nodes)).expect("a policy");
    (0..region.pages()).for_each(|page| region.touch(page));
}

fn stripe(bytes: usize, placement: &Placement) {
    let (_, placed) = allocate(bytes, placement, Extras::default()).expect("memory for the test");
    assert!(placed.is_as_asked(), "{:?}", placed.remarks);
}

fn main() -> Result<(), Box<dyn Error>> {
    let mib = std::env::args().nth(1).map_or(Ok(1024), |text| text.parse::<usize>())?;
    let bytes = mib << 20;
    let fastest = |work: fn()| (0..ROUNDS).map(|_| time(work)).fold(f64::MAX, f64::min);
    println!("discover        {:8.2} ms", fastest(|| drop(discover())));
    println!("discover_nodes  {:8.2} ms", fastest(|| drop(discover_nodes())));
    let machine = discover_nodes()?;
    let rset = RSet::allowed(&machine);
    let mut strides = vec![];
    for stride in [1, 16] {
        let pages = NonZeroU64::new(stride).ok_or("stripes have pages")?;
        strides.push((stride, Placement::new(MemoryPolicy::Striped(pages), &rset, &machine)?));
    }
    let (mut kernel, mut stripes) = (vec![], vec![vec![]; strides.len()]);
    for _ in 0..ROUNDS {
        let interleaved = time(|| interleave(bytes, *rset.memory()));
        kernel.push(interleaved);
        for ((_, placement), ratios) in strides.iter().zip(&mut stripes) {
            ratios.push(time(|| stripe(bytes, placement)) / interleaved);
        }
    }
    println!(
        "interleave {mib} MiB on {} nodes: {:.2} ms, by the kernel",
        rset.memory().len(),
        median(kernel)
    );
    for ((stride, _), ratios) in strides.iter().zip(stripes) {
        println!("striped:{stride:<3} {:.3} x", median(ratios));
    }
    Ok(())
}
