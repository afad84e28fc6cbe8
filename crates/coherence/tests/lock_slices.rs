//! Slices of time for tokens, on whole engines with a simulated clock: nodes that lock many mutexes at random take turns.

use gondwana_coherence::{Sc, ScOptions};
use gondwana_testbed::cluster::{Cluster, ClusterSetup, Step};
use gondwana_testbed::programs::Rng;
use gondwana_testbed::world::{Op, Setup};
use std::time::Duration;

/// How often each thread locks a mutex.
const USES: u32 = 10_000;

/// How long a program takes in which a thread of each node counts under mutexes that it chooses at random. A step takes 25 ns on
/// average, a message 2.7 us.
fn time(nodes: usize, mutexes: usize, seed: u64) -> Duration {
    const SIZE: usize = 64;
    let setup = Setup {
        nodes,
        pages: 1,
        page_size: SIZE,
        threads: vec![],
        locks: mutexes,
        lazy: true,
        ahead: 0,
        stride: 0,
        manager: None,
        placed: vec![],
        given: false,
    };
    let mut rng = Rng(seed);
    let threads = (0..nodes).map(|node| {
        // Mutexes have several bytes each.
        let mutex = (0..USES).map(|_| rng.below(mutexes) * 64).collect::<Vec<_>>();
        (
            node,
            mutex.into_iter().flat_map(|mutex| [Op::Lock(mutex), Op::Unlock(mutex)].map(Step::Op)).collect(),
        )
    });
    let threads = threads.collect();
    Cluster::new(ClusterSetup { layout: setup.layout(0), threads, step: 50, seed }, |layout| {
        Box::new(Sc::new(layout, ScOptions::default()))
    })
    .run()
    .expect("each thread gets each mutex")
}

#[test]
fn nodes_that_lock_many_mutexes_at_random_take_turns() {
    for nodes in 2..=4_u32 {
        for seed in 0..4 {
            // Of the tokens, all but one in so many nodes are elsewhere, and take two messages or three.
            let each = time(nodes as usize, 64, seed) / USES;
            assert!(each < Duration::from_nanos(300) * nodes, "{nodes} nodes: {each:?} for each use");
        }
    }
}
