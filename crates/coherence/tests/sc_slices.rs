//! Slices of time under `sc`, on whole engines with a simulated clock: nodes that fight for many pages take turns with all of them.

use gondwana_coherence::{Sc, ScOptions};
use gondwana_testbed::cluster::{Cluster, ClusterSetup, Step};
use gondwana_testbed::programs::Rng;
use gondwana_testbed::world::{Op, Setup};
use std::time::Duration;

/// How long a program takes in which a thread of each node writes bytes of its own in random pages and reads them again. A step
/// takes 25 ns on average, a message 2.7 us.
fn time(nodes: usize, pages: usize, slice_pages: u32, seed: u64) -> Duration {
    const SIZE: usize = 64;
    let setup = Setup {
        nodes,
        pages,
        page_size: SIZE,
        threads: vec![],
        locks: 0,
        lazy: true,
        ahead: 0,
        stride: 0,
        manager: None,
        placed: vec![],
        given: false,
    };
    let mut rng = Rng(seed);
    let threads = (0..nodes).map(|node| {
        let mut program = Vec::new();
        for step in 0..10_000_usize {
            let address = rng.below(pages) * SIZE + node;
            program.push(Step::Op(Op::Write(address, step.to_le_bytes()[0])));
            program.push(Step::Op(Op::Read(address)));
        }
        (node, program)
    });
    let options = ScOptions { hold: Some(Duration::from_micros(8)), slice_pages };
    let threads = threads.collect();
    Cluster::new(ClusterSetup { layout: setup.layout(0), threads, step: 50, seed }, |layout| {
        Box::new(Sc::new(layout, options))
    })
    .run()
    .expect("each thread reads what it wrote")
}

#[test]
fn nodes_that_write_many_pages_at_random_take_turns() {
    for nodes in 2..=4 {
        for seed in 0..4 {
            let (with, without) = (time(nodes, 64, 8, seed), time(nodes, 64, u32::MAX, seed));
            assert!(with * 4 < without, "{nodes} nodes: {with:?} with slices, {without:?} without");
        }
    }
}

/// Whoever waits for a flag needs its page at once.
#[test]
fn few_pages_go_to_and_fro_as_without_slices() {
    for nodes in 2..=4 {
        assert_eq!(time(nodes, 3, 8, 1), time(nodes, 3, u32::MAX, 1));
    }
}
