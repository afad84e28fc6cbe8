//! Random programs on random schedules of several nodes. Race-free programs read what happens-before says under all
//! protocols; any program reads the last write under `sc`. At the end the nodes agree about who has what.

use gondwana_coherence::{
    C11, C11Options, Csm, CsmOptions, Erc, ErcOptions, HomeRole, Layout, Page, Sc, ScOptions,
};
use gondwana_testbed::programs::{
    catch_up_anywhere, expose_anywhere, place_anywhere, promote_anywhere, race_free, racy, with_new_pages,
};
use gondwana_testbed::setup::{Setup, common_after};
use gondwana_testbed::world::{Machine, World};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
struct Case {
    nodes: usize,
    threads_per_node: usize,
    pages: usize,
    page_size: usize,
    locks: usize,
    lazy: bool,
    ahead: u32,
    stride: u32,
    manager: Option<u16>,
    csm: CsmOptions,
    sc: ScOptions,
    racy: bool,
    /// Homes that are decided before the start, and how many times threads decide others.
    placed: Vec<Option<u16>>,
    places: usize,
    /// Pages that are used later, with homes decided before.
    new_pages: usize,
    /// How often a node exposes what it used alone.
    exposed: usize,
    /// How often a thread says that it synchronises on a page.
    promoted: usize,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (
        (2usize..=4, 1usize..=2, 1usize..=6, prop_oneof![Just(4usize), Just(8), Just(4096)], 0usize..=3),
        (any::<bool>(), (0u32..4, 0u32..3), prop_oneof![Just(None), Just(Some(0)), Just(Some(1))]),
        (
            (any::<bool>(), any::<bool>(), 0u8..4, 1u32..4),
            prop_oneof![Just(1usize), Just(1 << 19)],
            any::<bool>(),
            (0usize..8, any::<u64>()),
        ),
        prop_oneof![
            Just((vec![], 0, 0)),
            (proptest::collection::vec(proptest::option::of(0u16..4), 0..6), 0usize..6, 0usize..3)
        ],
    )
        .prop_map(
            |(
                (nodes, threads_per_node, pages, page_size, locks),
                (lazy, (ahead, stride), manager),
                rest,
                (mut placed, places, new_pages),
            )| {
                placed.truncate(pages);
                for home in placed.iter_mut().flatten() {
                    *home %= u16::try_from(nodes).unwrap();
                }
                let ((migrate, one_sided, keep, window), bulk_limit, hold, (exposed, seed)) = rest;
                let sample = 1 + (seed % 4) as u32;
                let updates = (seed / 4 % 4) as u8;
                let common_after = common_after((seed / 16 % 5) as u8);
                let csm = CsmOptions {
                    migrate,
                    bulk_limit,
                    one_sided,
                    keep,
                    updates,
                    ordered: seed / 80 % 3 == 0,
                    common_after,
                    sample,
                    window,
                };
                let hold = hold.then_some(Duration::ZERO);
                let sc = ScOptions { hold, common_after, ..ScOptions::default() };
                let racy = false;
                Case {
                    nodes,
                    threads_per_node,
                    pages,
                    page_size,
                    locks,
                    lazy,
                    ahead,
                    stride,
                    manager,
                    csm,
                    sc,
                    racy,
                    placed,
                    places,
                    new_pages,
                    exposed,
                    promoted: (seed / 64 % 8) as usize,
                    seed,
                }
            },
        )
}

/// Homes that were decided before the start are where they were asked to be, if anybody has used the pages.
fn homes_are_as_asked<P: Machine>(case: &Case, world: &World<P>) -> Result<(), TestCaseError> {
    for (page, home) in (0..).map(Page).zip(&case.placed) {
        let Some(home) = home else { continue };
        let found = (0..case.nodes).find(|&node| world.nodes[node].machine.home_role(page) == HomeRole::Home);
        prop_assert!(
            found.is_none_or(|found| found == usize::from(*home)),
            "page {} is on {:?}",
            page.0,
            found
        );
    }
    Ok(())
}

fn run<P: Machine>(case: &Case, machine: impl Fn(Layout) -> P) -> Result<(), TestCaseError> {
    let mut setup = Setup {
        nodes: case.nodes,
        pages: case.pages,
        page_size: case.page_size,
        threads: (0..case.nodes * case.threads_per_node)
            .map(|thread| (thread % case.nodes, vec![]))
            .collect(),
        locks: case.locks,
        lazy: case.lazy,
        ahead: case.ahead,
        stride: case.stride,
        manager: case.manager,
        placed: case.placed.clone(),
        given: case.seed % 2 == 1,
    };
    let program = |setup: &mut Setup, seed| match case.racy {
        true => racy(setup, 100, seed),
        false => race_free(setup, 4, 25, seed),
    };
    program(&mut setup, case.seed);
    place_anywhere(&mut setup, case.places, case.seed);
    expose_anywhere(&mut setup, case.exposed, case.seed);
    promote_anywhere(&mut setup, case.promoted, case.seed);
    catch_up_anywhere(&mut setup, 2 * case.exposed, case.seed);
    if case.new_pages > 0 {
        with_new_pages(&mut setup, case.new_pages, case.seed, program);
    }
    let mut world = World::new(&setup, machine);
    for node in &mut world.nodes {
        node.memory.observed = case.seed % 8 < 4;
    }
    world.run_at_random(&setup, !case.seed, 200_000).map_err(TestCaseError::fail)?;
    if case.places == 0 {
        homes_are_as_asked(case, &world)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn csm_race_free_programs_read_what_happens_before_says(case in case()) {
        run(&case, |layout| Csm::new(layout, case.csm))?;
    }

    /// It does not place pages.
    #[test]
    fn erc_race_free_programs_read_what_happens_before_says(case in case()) {
        let hold = case.sc.hold.is_some();
        let case = Case { placed: vec![], ..case };
        run(&case, |layout| Erc::new(layout, ErcOptions { hold }))?;
    }

    #[test]
    fn c11_race_free_programs_read_what_happens_before_says(case in case()) {
        let options = C11Options { csm: case.csm, sc: case.sc };
        // A synchronisation page stays with its manager.
        let case = Case { placed: vec![], ..case };
        run(&case, |layout| C11::new(layout, options))?;
    }

    #[test]
    fn sc_race_free_programs_read_what_happens_before_says(case in case()) {
        run(&case, |layout| Sc::new(layout, case.sc))?;
    }

    #[test]
    fn sc_any_program_reads_the_last_write(case in case()) {
        run(&Case { racy: true, ..case }, |layout| Sc::new(layout, case.sc))?;
    }
}
