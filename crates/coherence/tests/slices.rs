//! Slices of time, on whole engines with a simulated clock: nodes that fight for many pages under `sc`, or for the tokens of many
//! mutexes, take turns with all of them.

use gondwana_coherence::{Sc, ScOptions};
use gondwana_testbed::cluster::{Cluster, ClusterSetup, Step};
use gondwana_testbed::programs::Rng;
use gondwana_testbed::setup::{Op, Setup};
use std::time::Duration;

/// Bytes of a page.
const PAGE: usize = 64;

/// How often each thread does what is measured.
const ROUNDS: u32 = 10_000;

/// How long a program takes in which a thread of each node does some operations in each round: `round` chooses them at random, of a
/// number of a round and a node. A step takes 25 ns on average, a message 2.7 us.
fn time<const OPS: usize>(
    (nodes, pages): (usize, usize),
    options: ScOptions,
    seed: u64,
    round: impl Fn(&mut Rng, u32, usize) -> [Op; OPS],
) -> Duration {
    let mut rng = Rng(seed);
    let threads = (0..nodes).map(|node| {
        let rounds = (0..ROUNDS).flat_map(|number| round(&mut rng, number, node).map(Step::Op));
        (node, rounds.collect())
    });
    let (threads, layout) = (threads.collect(), Setup::new(nodes, pages, PAGE).layout(0));
    Cluster::new(ClusterSetup { layout, threads, step: 50, seed }, |layout| {
        Box::new(Sc::new(layout, options))
    })
    .run()
    .expect("each thread reads what it wrote, and gets each mutex")
}

/// Threads write bytes of their own in random pages and read them again.
fn time_of_pages(nodes: usize, pages: usize, slice_pages: u32, seed: u64) -> Duration {
    let options = ScOptions { hold: Some(Duration::from_micros(8)), slice_pages, common_after: None };
    time((nodes, pages), options, seed, |rng, number, node| {
        let address = rng.below(pages) * PAGE + node;
        [Op::Write(address, number.to_le_bytes()[0]), Op::Read(address)]
    })
}

/// Threads lock one mutex, and write and read what it guards in random pages.
fn time_of_guarded_pages(nodes: usize, slice_pages: u32, seed: u64) -> Duration {
    const PAGES: usize = 12;
    let options = ScOptions { hold: Some(Duration::from_micros(8)), slice_pages, common_after: None };
    time((nodes, PAGES), options, seed, |rng, number, _| {
        let (written, read) = (rng.below(PAGES) * PAGE, rng.below(PAGES) * PAGE);
        [Op::Lock(0), Op::Write(written, number.to_le_bytes()[0]), Op::Read(read), Op::Unlock(0)]
    })
}

/// Threads lock mutexes that they choose at random.
fn time_of_mutexes(nodes: usize, mutexes: usize, seed: u64) -> Duration {
    time((nodes, 1), ScOptions::default(), seed, |rng, _, _| {
        // Mutexes have several bytes each.
        let mutex = rng.below(mutexes) * 64;
        [Op::Lock(mutex), Op::Unlock(mutex)]
    })
}

#[test]
fn nodes_that_write_many_pages_at_random_take_turns() {
    for nodes in 2..=4 {
        for seed in 0..4 {
            let (with, without) =
                (time_of_pages(nodes, 64, 8, seed), time_of_pages(nodes, 64, u32::MAX, seed));
            assert!(with * 4 < without, "{nodes} nodes: {with:?} with slices, {without:?} without");
        }
    }
}

/// Whoever waits for a flag needs its page at once.
#[test]
fn few_pages_go_to_and_fro_as_without_slices() {
    for nodes in 2..=4 {
        assert_eq!(time_of_pages(nodes, 3, 8, 1), time_of_pages(nodes, 3, u32::MAX, 1));
    }
}

#[test]
fn nodes_that_lock_many_mutexes_at_random_take_turns() {
    for nodes in 2..=4_u32 {
        for seed in 0..4 {
            // Of the tokens, all but one in so many nodes are elsewhere, and take two messages or three.
            let each = time_of_mutexes(nodes as usize, 64, seed) / ROUNDS;
            assert!(each < Duration::from_nanos(300) * nodes, "{nodes} nodes: {each:?} for each use");
        }
    }
}

/// One mutex alone would change hands after each use, and all pages with it.
#[test]
fn tokens_stay_in_the_slices_of_pages() {
    for nodes in 2..=4 {
        for seed in 0..4 {
            let (with, without) =
                (time_of_guarded_pages(nodes, 8, seed), time_of_guarded_pages(nodes, u32::MAX, seed));
            assert!(with * 5 < without * 4, "{nodes} nodes: {with:?} with slices, {without:?} without");
        }
    }
}
