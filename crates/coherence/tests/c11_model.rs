//! Every schedule of small programs on `c11` machines. Atomic instructions make their pages synchronisation pages, once or while other
//! threads use them; what a thread has written before on ordinary pages is seen by whoever synchronises with it there.
//!
//! A `Look` may read any value that some thread writes: the program as a whole says what it must never see. Address 0 and 1 are in
//! page 0, address 2 and 3 in page 1, and so on.

use gondwana_coherence::{C11, C11Options, CsmOptions, Layout, ScOptions};
use gondwana_testbed::model::Schedules;
use gondwana_testbed::programs::{self, Rng};
use gondwana_testbed::setup::Op::{self, Add, Barrier, Lock, Look, Read, Unlock, Write};
use std::time::Duration;

/// On an ordinary page.
const DATA: usize = 0;
/// On the next page, which becomes a synchronisation page.
const FLAG: usize = 2;

fn options(one_sided: bool) -> C11Options {
    let csm = CsmOptions { one_sided, ..CsmOptions::default() };
    C11Options { csm, sc: ScOptions::default() }
}

fn by_messages(layout: Layout) -> C11 {
    C11::new(layout, options(false))
}

fn one_sided(layout: Layout) -> C11 {
    C11::new(layout, options(true))
}

fn holding(layout: Layout) -> C11 {
    let sc = ScOptions { hold: Some(Duration::ZERO), ..ScOptions::default() };
    C11::new(layout, C11Options { sc, ..options(false) })
}

/// Plain loads and stores synchronise on ordinary pages, too.
fn ordered(layout: Layout) -> C11 {
    let csm = CsmOptions { ordered: true, ..CsmOptions::default() };
    C11::new(layout, C11Options { csm, sc: ScOptions::default() })
}

const MACHINES: [fn(Layout) -> C11; 4] = [by_messages, one_sided, holding, ordered];

fn check(nodes: usize, pages: usize, threads: &[(usize, &[Op])], change: impl Fn(&mut Schedules<C11>)) {
    for machine in MACHINES {
        for manager in [None, Some(0), Some(1)] {
            let mut schedules = Schedules::new(nodes, pages, threads, machine);
            schedules.setup.manager = manager;
            change(&mut schedules);
            schedules.check();
        }
    }
}

/// What is written before an atomic instruction is seen by who synchronises with it.
#[test]
fn message_passing() {
    check(2, 2, &[(0, &[Write(DATA, 1), Add(FLAG, 1)]), (1, &[Add(FLAG, 0), Look(DATA)])], |model| {
        model.forbidden = |world| world.threads[1].read == [1, 0];
        model.possible = |world| world.threads[1].read == [1, 1];
    });
}

/// The same where the reader has an old copy, and the writer's store to the synchronisation page is a plain one.
#[test]
fn message_passing_to_an_old_copy() {
    let writer = [Add(FLAG, 0), Barrier, Write(DATA, 1), Write(FLAG, 1)];
    let reader = [Look(DATA), Barrier, Look(FLAG), Look(DATA)];
    check(2, 2, &[(0, &writer), (1, &reader)], |model| {
        model.forbidden = |world| world.threads[1].read == [0, 1, 0];
        model.possible = |world| world.threads[1].read == [0, 1, 1];
    });
}

/// A plain store that comes before the page is a synchronisation page, as in a lock that is set up by a store.
#[test]
fn a_plain_store_before_the_promotion() {
    let (writer, reader) = ([Write(DATA, 1), Write(FLAG, 1)], [Look(DATA), Add(FLAG, 0), Look(DATA)]);
    check(2, 2, &[(0, &writer), (1, &reader)], |model| {
        model.forbidden = |world| world.threads[1].read == [0, 1, 0];
        model.possible = |world| world.threads[1].read == [0, 1, 1];
    });
}

/// Both threads write, then look at what the other one writes: one of them sees it.
#[test]
fn store_buffering_by_atomic_instructions() {
    let (a, b) = ([Add(DATA, 1), Look(FLAG)], [Add(FLAG, 1), Look(DATA)]);
    check(2, 2, &[(0, &a), (1, &b)], |model| {
        model.forbidden = |world| world.threads[0].read == [0, 0] && world.threads[1].read == [0, 0];
        model.possible = |world| world.threads[0].read == [0, 1] && world.threads[1].read == [0, 1];
    });
}

/// No addition is lost, whenever the page becomes a synchronisation page, and neighbouring bytes are as they were written.
#[test]
fn additions_beside_plain_stores() {
    let (a, b) = ([Write(1, 7), Add(DATA, 1), Look(1)], [Add(DATA, 1), Add(DATA, 1)]);
    check(2, 1, &[(0, &a), (1, &b)], |model| {
        model.forbidden = |world| world.at(DATA) != 3 || world.threads[0].read[1] != 7;
        model.possible = |world| world.threads[0].read == [1, 7];
    });
}

/// A policy moves the home to a node that has left the page already.
#[test]
fn a_home_that_is_given_away_meanwhile() {
    let giver = [Write(DATA, 7), Op::Place { first: 0, count: 1, home: Some(1), used: false }];
    for machine in MACHINES {
        let mut model = Schedules::new(3, 1, &[(0, &giver), (2, &[Add(DATA, 1)])], machine);
        model.setup.manager = Some(2);
        model.forbidden = |world| ![7, 8].contains(&world.at(DATA));
        model.possible = |world| world.threads[1].read == [7];
        model.check();
    }
}

#[test]
fn additions_of_three_nodes() {
    for machine in MACHINES {
        let adds: [&[Op]; 3] =
            [&[Add(DATA, 1), Add(FLAG, 1)], &[Add(FLAG, 1), Add(DATA, 1)], &[Add(DATA, 1)]];
        let mut model = Schedules::new(3, 2, &[(0, adds[0]), (1, adds[1]), (2, adds[2])], machine);
        model.forbidden = |world| world.at(DATA) != 3 || world.at(FLAG) != 2;
        model.possible = |world| world.threads[2].read == [1];
        model.check();
    }
}

/// Happens-before goes on over a third node, which has read the flag and sets another one on a page of its own.
#[test]
fn causality_over_three_nodes() {
    const SECOND: usize = 4;
    for machine in MACHINES {
        let programs: [&[Op]; 3] = [
            &[Write(DATA, 1), Add(FLAG, 1)],
            &[Add(FLAG, 0), Add(SECOND, 1)],
            &[Look(DATA), Add(SECOND, 0), Look(DATA)],
        ];
        let threads = [(0, programs[0]), (1, programs[1]), (2, programs[2])];
        let mut model = Schedules::new(3, 3, &threads, machine);
        model.forbidden = |world| world.threads[1].read[0] == 1 && world.threads[2].read == [0, 1, 0];
        model.possible = |world| world.threads[1].read[0] == 1 && world.threads[2].read == [0, 1, 1];
        model.check();
    }
}

/// From a mutex to a flag: what is written under the lock is seen by who sees the flag that was set behind it.
#[test]
fn from_a_mutex_to_a_flag() {
    let first = [Lock(0), Write(DATA, 1), Unlock(0)];
    let second = [Lock(0), Read(DATA), Unlock(0), Add(FLAG, 1)];
    let third = [Look(DATA), Add(FLAG, 0), Look(DATA)];
    for machine in MACHINES {
        for lazy in [false, true] {
            let mut model = Schedules::new(3, 2, &[(0, &first), (1, &second), (2, &third)], machine);
            model.setup.lazy = lazy;
            model.forbidden = |world| world.threads[1].read[0] == 1 && world.threads[2].read == [0, 1, 0];
            model.possible = |world| world.threads[1].read[0] == 1 && world.threads[2].read == [0, 1, 1];
            model.check();
        }
    }
}

/// The home has written a page, and leaves it before a node that has an old copy and synchronises by a mutex.
#[test]
fn a_home_leaves_before_its_readers() {
    let writer = [Write(1, 1), Barrier, Barrier, Lock(0), Write(DATA, 2), Unlock(0), Barrier, Read(DATA)];
    let reader =
        [Barrier, Read(1), Barrier, Lock(0), Write(DATA, 2), Write(DATA, 0), Unlock(0), Barrier, Read(DATA)];
    let promotes = [Barrier, Barrier, Op::Promote(0), Barrier];
    for machine in MACHINES {
        for lazy in [false, true] {
            let mut model = Schedules::new(3, 1, &[(0, &writer), (1, &reader), (2, &promotes)], machine);
            model.setup.manager = Some(2);
            model.setup.lazy = lazy;
            model.check();
        }
    }
}

/// Plain flags on ordinary pages, of which some thread makes one a synchronisation page meanwhile.
#[test]
fn plain_flags_beside_synchronisation_pages() {
    let (writer, reader) = ([Write(DATA, 1), Write(FLAG, 1)], [Look(DATA), Look(FLAG), Look(DATA)]);
    for promoted in [0, 1] {
        for nodes in [2, 3] {
            let promotes = [Op::Promote(promoted)];
            let threads: [(usize, &[Op]); 3] = [(0, &writer), (1, &reader), (nodes - 1, &promotes)];
            for manager in 0..2 {
                let mut model = Schedules::new(nodes, 2, &threads, ordered);
                model.setup.manager = Some(manager);
                model.forbidden = |world| world.threads[1].read == [0, 1, 0];
                model.possible = |world| world.threads[1].read == [0, 1, 1];
                model.check();
            }
        }
    }
}

/// The flag's home leaves the page while a diff of it is not committed, and the reader has not left it.
#[test]
fn a_home_that_leaves_shows_nothing_before_its_time() {
    let home = [Write(FLAG + 1, 1), Barrier];
    let writer = [Write(DATA + 1, 1), Barrier, Write(DATA, 1), Write(FLAG, 1), Op::Promote(1)];
    let reader = [Barrier, Look(DATA), Look(FLAG), Look(DATA)];
    let mut model = Schedules::new(3, 2, &[(0, &writer), (1, &reader), (2, &home)], |layout| {
        let csm = CsmOptions { ordered: true, migrate: false, ..CsmOptions::default() };
        C11::new(layout, C11Options { csm, sc: ScOptions::default() })
    });
    model.setup.manager = Some(0);
    model.forbidden = |world| world.threads[1].read == [0, 1, 0];
    model.possible = |world| world.threads[1].read == [0, 1, 1];
    model.check();
}

/// Programs that are right under release consistency stay so while a thread beside them makes one of their pages a synchronisation page.
fn promoted_anywhere(seeds: std::ops::Range<u64>, sections: usize) {
    for seed in seeds {
        let mut rng = Rng(seed);
        let nodes: &[usize] = [&[0, 1][..], &[0, 1, 1], &[0, 0, 1], &[0, 1, 2]][rng.below(4)];
        let threads: Vec<(usize, &[Op])> = nodes.iter().map(|&node| (node, &[][..])).collect();
        let machine = MACHINES[rng.below(MACHINES.len())];
        Schedules::new(3, 2, &threads, machine)
            .with(|setup| {
                setup.lazy = rng.chance(50);
                setup.ahead = u32::from(rng.chance(50));
                programs::sections(setup, if nodes.len() == 2 { sections } else { 1 }, seed);
                programs::promote_anywhere(setup, 1, seed);
            })
            .check();
    }
}

#[test]
fn many_small_programs() {
    promoted_anywhere(0..24, 2);
}

#[test]
#[ignore = "minutes"]
fn many_larger_programs() {
    promoted_anywhere(0..100, 3);
}
