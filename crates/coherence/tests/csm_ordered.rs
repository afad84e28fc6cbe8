//! Every schedule of small programs that synchronise by plain loads and stores, on ordered `csm` machines: what a thread reads after a
//! store of another node is at least as new as what was there before that store.
//!
//! A `Look` may read any value that some thread writes: the program as a whole says what it must never see. Address 0 and 1 are in
//! page 0, address 2 and 3 in page 1, and so on.

use gondwana_coherence::{Csm, CsmOptions, Layout, Protocol};
use gondwana_testbed::model::Schedules;
use gondwana_testbed::programs;
use gondwana_testbed::setup::Op::{self, Barrier, CatchUp, Lock, Look, Read, Unlock, Write};

/// On three pages.
const DATA: usize = 0;
const FLAG: usize = 2;
const SECOND: usize = 4;

fn moving_homes(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { ordered: true, ..CsmOptions::default() })
}

fn fixed_homes(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { ordered: true, migrate: false, ..CsmOptions::default() })
}

const MACHINES: [fn(Layout) -> Csm; 2] = [moving_homes, fixed_homes];

fn check(nodes: usize, pages: usize, threads: &[(usize, &[Op])], change: impl Fn(&mut Schedules<Csm>)) {
    for machine in MACHINES {
        for manager in [None, Some(0), Some(1), Some(2)] {
            let mut schedules = Schedules::new(nodes, pages, threads, machine);
            schedules.setup.manager = manager.filter(|&manager| usize::from(manager) < nodes);
            change(&mut schedules);
            schedules.check();
        }
    }
}

#[test]
fn message_passing() {
    for nodes in [2, 3] {
        let (writer, reader) = ([Write(DATA, 1), Write(FLAG, 1)], [Look(FLAG), Look(DATA)]);
        check(nodes, 2, &[(0, &writer), (1, &reader)], |model| {
            model.forbidden = |world| world.threads[1].read == [1, 0];
            model.possible = |world| world.threads[1].read == [1, 1];
        });
    }
}

/// The reader has a copy of the data, and of the flag or not.
#[test]
fn message_passing_to_old_copies() {
    for nodes in [2, 3] {
        let writer = [Barrier, Write(DATA, 1), Write(FLAG, 1), Lock(0), Unlock(0)];
        let reader = [Look(DATA), Barrier, Look(FLAG), Look(DATA)];
        check(nodes, 2, &[(0, &writer), (1, &reader)], |model| {
            model.forbidden = |world| world.threads[1].read == [0, 1, 0];
            model.possible = |world| world.threads[1].read == [0, 1, 1];
        });
        let reader =
            [Look(DATA), Look(FLAG), Barrier, Look(FLAG), Look(DATA), Lock(0), Unlock(0), Look(FLAG)];
        check(nodes, 2, &[(0, &writer), (1, &reader)], |model| {
            model.forbidden = |world| world.threads[1].read[2..4] == [1, 0];
            model.possible = |world| world.threads[1].read == [0, 0, 0, 0, 1];
        });
    }
}

/// Both pages have copies on the writer's node, and homes elsewhere.
#[test]
fn message_passing_by_diffs() {
    let writer = [Barrier, Write(DATA, 1), Write(FLAG, 1), Lock(0), Unlock(0)];
    for nodes in [2, 3] {
        let reader = [Write(1, 1), Write(FLAG + 1, 1), Barrier, Look(FLAG), Look(DATA)];
        check(nodes, 2, &[(0, &writer), (1, &reader)], |model| {
            model.forbidden = |world| world.threads[1].read == [1, 0];
            model.possible = |world| world.threads[1].read == [1, 1];
        });
    }
    let owner = [Write(1, 1), Write(FLAG + 1, 1), Barrier, Look(FLAG), Look(DATA)];
    let reader = [Look(DATA), Look(FLAG), Barrier, Look(FLAG), Look(DATA)];
    let threads: [(usize, &[Op]); 3] = [(0, &writer), (1, &owner), (2, &reader)];
    for machine in MACHINES {
        let mut model = Schedules::new(3, 2, &threads, machine);
        model.forbidden = |world| world.threads[1].read == [1, 0] || world.threads[2].read[2..] == [1, 0];
        model.possible = |world| world.threads[1].read == [1, 1];
        model.check();
    }
}

/// The reader has fetched the flag again after a notice: it is sent what changes there, as the home's own writes or as diffs. The data it
/// has an old copy of.
#[test]
fn message_passing_by_updates() {
    let looks = [Look(FLAG), Look(DATA), CatchUp, CatchUp];
    let (before, again) = ([Barrier, Look(FLAG), Look(DATA), Barrier], [Barrier, Look(FLAG), Barrier]);
    let reader = [&before[..], &again, &looks, &looks].concat();
    let home = [Write(1, 1), Write(FLAG + 1, 1), Barrier];
    let writer =
        [Barrier, Write(FLAG, 1), Barrier, Barrier, Write(DATA, 1), Write(FLAG, 2), CatchUp, CatchUp];
    let (writing_home, idle_home) = ([&home, &writer[..]].concat(), [&home[..], &[Barrier; 3]].concat());
    let writer = [&[Barrier], &writer[..]].concat();
    let at_home: [(usize, &[Op]); 2] = [(0, &writing_home), (1, &reader)];
    let by_diffs: [(usize, &[Op]); 3] = [(0, &writer), (1, &reader), (2, &idle_home)];
    for (nodes, threads) in [(2, &at_home[..]), (3, &at_home), (3, &by_diffs)] {
        let mut model = Schedules::new(nodes, 2, threads, fixed_homes);
        model.forbidden = |world| {
            let updated = world.nodes[1].machine.counters().updates_received;
            let looks = &world.threads[1].read[3..];
            updated == 0 || looks[..2] == [2, 0] || looks[2..] == [2, 0] || looks[2] < looks[0]
        };
        model.possible = |world| world.threads[1].read[3..] == [1, 0, 2, 1];
        model.check();
    }
}

/// A second thread of the writer's node releases while the first one writes.
#[test]
fn a_release_is_a_snapshot() {
    let writer = [Write(DATA, 1), Write(FLAG, 1)];
    let releaser = [Write(1, 1), Lock(0), Unlock(0), Write(FLAG + 1, 2), Lock(0), Unlock(0)];
    let reader = [Look(DATA), Look(FLAG), Look(DATA)];
    check(2, 2, &[(0, &writer), (0, &releaser), (1, &reader)], |model| {
        model.forbidden = |world| world.threads[2].read[1..] == [1, 0];
        model.possible = |world| world.threads[2].read[1..] == [1, 1];
    });
}

/// Happens-before goes on over a node that has read the flag and sets another one.
#[test]
fn causality_over_three_nodes() {
    let programs: [&[Op]; 3] = [
        &[Write(DATA, 1), Write(FLAG, 1)],
        &[Look(FLAG), Write(SECOND, 1)],
        &[Look(DATA), Look(SECOND), Look(DATA)],
    ];
    let threads = [(0, programs[0]), (1, programs[1]), (2, programs[2])];
    check(3, 3, &threads, |model| {
        model.forbidden = |world| world.threads[1].read == [1] && world.threads[2].read == [0, 1, 0];
        model.possible = |world| world.threads[1].read == [1] && world.threads[2].read == [0, 1, 1];
    });
}

/// The same from a flag to a mutex.
#[test]
fn from_a_flag_to_a_mutex() {
    let first = [Write(DATA, 1), Write(FLAG, 1)];
    let second = [Look(FLAG), Lock(0), Write(SECOND, 1), Unlock(0)];
    let third = [Look(DATA), Lock(0), Read(SECOND), Unlock(0), Look(DATA)];
    for lazy in [false, true] {
        check(3, 3, &[(0, &first), (1, &second), (2, &third)], |model| {
            model.setup.lazy = lazy;
            model.forbidden = |world| world.threads[1].read == [1] && world.threads[2].read == [0, 1, 0];
            model.possible = |world| world.threads[1].read == [1] && world.threads[2].read == [0, 1, 1];
        });
    }
}

/// What a node has read it reads again, or something newer.
#[test]
fn reads_of_one_byte_go_forward() {
    let (writer, reader) =
        ([Write(DATA, 1), Lock(0), Unlock(0), Write(DATA, 2)], [Look(DATA), Look(DATA), Look(DATA)]);
    check(3, 1, &[(0, &writer), (1, &reader), (2, &[Write(1, 7), Lock(0), Unlock(0)])], |model| {
        model.forbidden = |world| world.threads[1].read.windows(2).any(|pair| pair[0] > pair[1]);
        model.possible = |world| world.threads[1].read[0] == 1;
    });
}

/// A node catches up twice: threads may have synchronised since the time before.
#[test]
fn what_is_written_is_seen_in_the_end() {
    let catch_up: (usize, &[Op]) = (0, &[CatchUp, CatchUp, CatchUp]);
    let writer = [Barrier, Write(DATA, 1), Write(FLAG, 1), CatchUp, CatchUp];
    let reader = [Look(DATA), Look(FLAG), Barrier, Look(FLAG), Look(DATA), CatchUp, CatchUp, Look(FLAG)];
    for nodes in [2, 3] {
        check(nodes, 2, &[(0, &writer), (1, &reader)], |model| {
            model.forbidden = |world| world.threads[1].read[2..4] == [1, 0];
            model.possible = |world| world.threads[1].read == [0, 0, 0, 0, 1];
        });
    }
    let (writer, reader) = ([Write(DATA, 1), Write(DATA, 2)], [Look(DATA), CatchUp, CatchUp, Look(DATA)]);
    for machine in MACHINES {
        let mut model = Schedules::new(2, 1, &[(0, &writer), catch_up, (1, &reader)], machine);
        model.forbidden = |world| world.threads[2].read == [2, 1] || world.threads[2].read == [2, 0];
        model.possible = |world| world.threads[2].read == [1, 2];
        model.check();
    }
}

/// Programs without data races that use three nodes and any locks and barriers.
#[test]
fn many_small_programs_without_races() {
    for seed in 0..24 {
        let nodes: [&[usize]; 3] = [&[0, 1], &[0, 1, 2], &[0, 0, 1]];
        let nodes = nodes[usize::try_from(seed % 3).expect("it is small")];
        let threads: Vec<(usize, &[Op])> = nodes.iter().map(|&node| (node, &[][..])).collect();
        for machine in MACHINES {
            Schedules::new(3, 2, &threads, machine)
                .with(|setup| {
                    setup.lazy = seed % 2 == 1;
                    programs::sections(setup, if nodes.len() == 2 { 2 } else { 1 }, seed);
                })
                .check();
        }
    }
}
