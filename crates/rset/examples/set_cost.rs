//! How long operations on sets of 4,096 processors take, and the placement of a page.

use gondwana_rset::{MemoryPolicy, Placement, RSet, ThreadPlan, ThreadPolicy};
use gondwana_topology::{Bytes, Machine, NodeId, NodeSet, ProcessorId};
use std::hint::black_box;
use std::num::NonZeroU64;
use std::time::Instant;

const ROUNDS: u32 = 100;
const REPEATED: u32 = 10_000;

/// The best of many rounds, so that what else the computer does takes no part.
fn measure<T>(name: &str, mut work: impl FnMut(u32) -> T) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for index in 0..REPEATED {
            black_box(work(black_box(index)));
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(REPEATED));
    }
    println!("{name:24} {:8.1} ns", best * 1e9);
}

fn main() {
    let machine = Machine::uniform(64, 64, Bytes(1 << 34));
    let all = black_box(RSet::global(&machine));
    let even =
        black_box(RSet::new((0..4096).step_by(2).map(ProcessorId).collect(), NodeSet::only(NodeId(3))));
    measure("union", |_| all.union(&even));
    measure("intersection", |_| all.intersection(&even));
    measure("difference", |_| all.difference(&even));
    measure("contains", |_| all.contains(&even));
    measure("equal", |_| all == even);
    measure("empty", |_| even.is_empty());
    measure("number of processors", |_| even.processors().len());
    measure("walk of 2,048 processors", |_| even.processors().iter().map(ProcessorId::index).sum::<usize>());
    let striped = MemoryPolicy::Striped(NonZeroU64::new(4).expect("4 is not 0"));
    for policy in [MemoryPolicy::Local, striped, MemoryPolicy::Block] {
        let placement = Placement::new(policy, &all, &machine).expect("the whole machine has memory");
        measure(&format!("page, {policy}"), |page| placement.node_of(page.into(), 1 << 30, NodeId(5)));
    }
    let plan = ThreadPlan::new(ThreadPolicy::Fill, &all, &machine).expect("the whole machine has processors");
    measure("thread, fill", |thread| plan.place_of(thread as usize));
}
