//! Whole engines over a simulated network with a simulated clock: coherence, mutexes, barriers and semaphores together, as a node
//! runs them. Programs without data races read what happens-before says.

mod lazy_updates;

use gondwana_coherence::{Csm, CsmOptions, Erc, ErcOptions, Layout, Protocol, Sc, ScOptions};
use gondwana_testbed::cluster::{Cluster, ClusterSetup, Step};
use gondwana_testbed::programs::{place_anywhere, race_free};
use gondwana_testbed::setup::{Op, Setup, common_after};
use lazy_updates::LazyUpdates;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
struct Case {
    nodes: usize,
    threads_per_node: usize,
    pages: usize,
    page_size: usize,
    locks: usize,
    rounds: usize,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (
        2usize..=4,
        1usize..=3,
        1usize..=4,
        prop_oneof![Just(4usize), Just(64)],
        0usize..=3,
        0usize..=2,
        any::<u64>(),
    )
        .prop_map(|(nodes, threads_per_node, pages, page_size, locks, rounds, seed)| Case {
            nodes,
            threads_per_node,
            pages,
            page_size,
            locks,
            rounds,
            seed,
        })
}

/// A race-free program under mutexes and barriers, after which threads pass each other bytes by semaphores.
fn setup(case: Case, places: usize) -> ClusterSetup {
    let Case { nodes, threads_per_node, pages, page_size, locks, rounds, seed } = case;
    let threads = nodes * threads_per_node;
    let mut world = Setup {
        threads: (0..threads).map(|thread| (thread % nodes, vec![])).collect(),
        locks,
        ..Setup::new(nodes, pages, page_size)
    };
    race_free(&mut world, 3, 20, seed);
    place_anywhere(&mut world, places, seed);
    let mut programs: Vec<(usize, Vec<Step>)> = Vec::new();
    for (node, program) in &world.threads {
        programs.push((*node, program.iter().copied().map(Step::Op).collect()));
    }
    for round in 0..rounds {
        let address = round % (pages * page_size);
        for (thread, (_, program)) in programs.iter_mut().enumerate() {
            if thread > 0 || round > 0 {
                program.push(Step::Wait(thread));
            }
            let value = seed.to_le_bytes()[0] ^ thread.to_le_bytes()[0];
            program.extend([Op::Read(address), Op::Write(address, value)].map(Step::Op));
            program.push(Step::Post((thread + 1) % threads));
        }
    }
    ClusterSetup { layout: world.layout(0), threads: programs, step: 2_000, seed }
}

fn run(
    case: Case,
    places: usize,
    protocol: impl Fn(Layout) -> Box<dyn Protocol>,
) -> Result<(), TestCaseError> {
    Cluster::new(setup(case, places), protocol).run().map(|_| ()).map_err(TestCaseError::fail)
}

proptest! {
    #[test]
    fn csm_engines_run_programs_right(case in case(), places in 0usize..3, one_sided: bool, keep in 0u8..3, updates in 0u8..4, after in 0..5_u8, ordered: bool) {
        let common_after = if ordered { None } else { common_after(after) };
        let options = CsmOptions { one_sided, ordered, keep, updates, common_after, ..CsmOptions::default() };
        run(case, places, |layout| Box::new(Csm::new(layout, options)))?;
    }

    #[test]
    fn erc_engines_run_programs_right(case in case()) {
        run(case, 0, |layout| Box::new(Erc::new(layout, ErcOptions::default())))?;
    }

    #[test]
    fn sc_engines_run_programs_right(case in case(), hold: bool, slice_pages in 0..4_u32, after in 0..5_u8) {
        let (hold, common_after) = (hold.then_some(Duration::from_micros(8)), common_after(after));
        run(case, 0, |layout| Box::new(Sc::new(layout, ScOptions { hold, slice_pages, common_after })))?;
    }

    /// Nothing but what synchronisation carries brings data to other nodes.
    #[test]
    fn payloads_go_wherever_synchronisation_goes(case in case()) {
        run(case, 0, |layout| Box::new(LazyUpdates::new(layout)))?;
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let case = Case { nodes: 3, threads_per_node: 2, pages: 3, page_size: 64, locks: 2, rounds: 2, seed: 42 };
    let time = || {
        let csm = |layout| Box::new(Csm::new(layout, CsmOptions::default())) as Box<dyn Protocol>;
        Cluster::new(setup(case, 2), csm).run().unwrap()
    };
    let first = time();
    assert!(!first.is_zero());
    assert_eq!((first, first), (time(), time()));
}
