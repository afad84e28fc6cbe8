//! Random programs that synchronise by plain loads and stores, on random schedules of machines in order: a thread that has read a value has
//! seen all that happens before its store, over any number of nodes. Each byte has one writer, whose values count up. Where bytes have many
//! writers, all nodes have the same bytes in the end.

use gondwana_coherence::{C11, C11Options, Csm, CsmOptions, Layout, ScOptions};
use gondwana_testbed::programs::Rng;
use gondwana_testbed::setup::{Op, Setup};
use gondwana_testbed::world::{Machine, World};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Case {
    nodes: usize,
    threads_per_node: usize,
    pages: usize,
    page_size: usize,
    ahead: u32,
    manager: Option<u16>,
    migrate: bool,
    bulk_limit: usize,
    window: u32,
    updates: u8,
    length: usize,
    promoted: bool,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let manager = prop_oneof![Just(None), Just(Some(0)), Just(Some(1))];
    (
        (2usize..=4, 1usize..=2, 1usize..=4, prop_oneof![Just(4usize), Just(16)], 0u32..3, manager),
        (any::<bool>(), prop_oneof![Just(1usize), Just(1 << 19)], 1u32..4, any::<bool>(), any::<u64>()),
        (prop_oneof![Just(0u8), Just(2), Just(16)], prop_oneof![Just(40usize), Just(150)]),
    )
        .prop_map(|((nodes, threads_per_node, pages, page_size, ahead, manager), rest, more)| {
            let ((migrate, bulk_limit, window, promoted, seed), (updates, length)) = (rest, more);
            Case {
                nodes,
                threads_per_node,
                pages,
                page_size,
                ahead,
                manager,
                migrate,
                bulk_limit,
                window,
                updates,
                length,
                promoted,
                seed,
            }
        })
}

impl Case {
    fn csm(&self) -> CsmOptions {
        let Self { migrate, bulk_limit, window, updates, .. } = *self;
        CsmOptions { ordered: true, migrate, bulk_limit, window, updates, ..CsmOptions::default() }
    }

    /// Each thread writes bytes of its own, looks at all, and now and then does something that makes others see it.
    fn setup(&self) -> Setup {
        self.programs(false)
    }

    /// The same, but threads write any byte. In the end, all look at all bytes.
    fn racing(&self) -> Setup {
        let mut setup = self.programs(true);
        for (_, program) in &mut setup.threads {
            program.push(Op::Barrier);
            program.extend((0..self.pages * self.page_size).map(Op::Look));
        }
        setup
    }

    fn programs(&self, racing: bool) -> Setup {
        let mut rng = Rng(self.seed);
        let (threads, bytes) = (self.nodes * self.threads_per_node, self.pages * self.page_size);
        let mut written = vec![0; bytes];
        let program = |thread: usize, rng: &mut Rng, written: &mut Vec<u8>| {
            let mut program = vec![];
            for _ in 0..self.length {
                let any = rng.below(bytes);
                let own = if racing { any } else { any / threads * threads + thread };
                match rng.below(12) {
                    0..5 if own < bytes => {
                        written[own] += 1;
                        program.push(Op::Write(own, written[own]));
                    }
                    0..9 => program.push(Op::Look(any)),
                    9 => program.extend([Op::Lock(0), Op::Unlock(0)]),
                    10 if self.promoted => {
                        let page = any / self.page_size;
                        program.push(Op::Promote(u32::try_from(page).expect("there are few pages")));
                    }
                    _ => program.push(Op::CatchUp),
                }
            }
            program
        };
        let threads =
            (0..threads).map(|thread| (thread % self.nodes, program(thread, &mut rng, &mut written)));
        Setup {
            threads: threads.collect(),
            locks: 1,
            ahead: self.ahead,
            manager: self.manager,
            ..Setup::new(self.nodes, self.pages, self.page_size)
        }
    }
}

/// Runs a program to its end.
fn run<P: Machine>(
    case: &Case,
    setup: &Setup,
    machine: impl Fn(Layout) -> P,
) -> Result<World<P>, TestCaseError> {
    let mut world = World::new(setup, machine);
    world.run_at_random(setup, !case.seed, 100_000).map_err(TestCaseError::fail)?;
    Ok(world)
}

/// For each byte, the newest value that is known to happen before.
type Known = Vec<u8>;

/// Follows what threads have read, in any order that happens-before allows.
fn check<P: Machine>(setup: &Setup, world: &World<P>) -> Result<(), TestCaseError> {
    let bytes = setup.pages * setup.page_size;
    let mut known: Vec<Known> = vec![vec![0; bytes]; setup.threads.len()];
    let mut at = vec![(0, 0); setup.threads.len()];
    // What a thread knew when it wrote each value of a byte, from 1 on.
    let mut stores: Vec<Vec<Known>> = vec![vec![]; bytes];
    loop {
        let before = at.clone();
        for (thread, (_, program)) in setup.threads.iter().enumerate() {
            let (op, read) = &mut at[thread];
            let known = &mut known[thread];
            while let Some(next) = program.get(*op) {
                match *next {
                    Op::Write(byte, value) => {
                        known[byte] = value;
                        stores[byte].push(known.clone());
                    }
                    Op::Look(byte) => {
                        let value = world.threads[thread].read[*read];
                        prop_assert!(
                            value >= known[byte],
                            "thread {thread}, operation {op}: {value} at {byte}, but {} happens before",
                            known[byte]
                        );
                        if let Some(store) = usize::from(value).checked_sub(1) {
                            let Some(store) = stores[byte].get(store) else { break };
                            known.iter_mut().zip(store).for_each(|(mine, its)| *mine = (*mine).max(*its));
                        }
                        *read += 1;
                    }
                    _ => (),
                }
                *op += 1;
            }
        }
        if at == before {
            break;
        }
    }
    let ended = at.iter().zip(&setup.threads).all(|((op, _), (_, program))| *op == program.len());
    prop_assert!(ended, "a value was read before it was written");
    Ok(())
}

/// All threads have read the same bytes in the end.
fn check_ends<P: Machine>(setup: &Setup, world: &World<P>) -> Result<(), TestCaseError> {
    let bytes = setup.pages * setup.page_size;
    let ends: Vec<&[u8]> =
        world.threads.iter().map(|thread| &thread.read[thread.read.len() - bytes..]).collect();
    prop_assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}");
    Ok(())
}

proptest! {
    #[test]
    fn nodes_have_the_same_bytes_in_the_end(case in case()) {
        let case = Case { promoted: false, ..case };
        let setup = case.racing();
        check_ends(&setup, &run(&case, &setup, |layout| Csm::new(layout, case.csm()))?)?;
    }

    #[test]
    fn what_happens_before_is_seen(case in case()) {
        let case = Case { promoted: false, ..case };
        let setup = case.setup();
        check(&setup, &run(&case, &setup, |layout| Csm::new(layout, case.csm()))?)?;
    }

    #[test]
    fn what_happens_before_is_seen_beside_synchronisation_pages(case in case()) {
        let setup = case.setup();
        let options = C11Options { csm: case.csm(), sc: ScOptions::default() };
        check(&setup, &run(&case, &setup, |layout| C11::new(layout, options))?)?;
    }
}
