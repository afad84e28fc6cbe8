//! Every schedule of small programs, races included, on `sc` machines: every read returns the last write, nothing
//! gets stuck, and in the end managers, states and protections of the nodes agree.
//!
//! The litmus programs also name what they must never see. Address 0 and 1 are in page 0, address 2 in page 1.

use gondwana_coherence::{CommonAfter, Layout, Sc, ScOptions};
use gondwana_testbed::model::Schedules;
use gondwana_testbed::programs::{self, Rng};
use gondwana_testbed::setup::Op::{self, Add, Barrier, Lock, Place, Read, Unlock, Write};
use gondwana_testbed::setup::common_after;
use std::time::Duration;

const X: usize = 0;
const Y: usize = 2;

fn machine(layout: Layout) -> Sc {
    Sc::new(layout, ScOptions::default())
}

fn holding(layout: Layout) -> Sc {
    Sc::new(layout, ScOptions { hold: Some(Duration::ZERO), ..ScOptions::default() })
}

/// Pages become common when they are taken for the first time.
fn common(layout: Layout) -> Sc {
    Sc::new(layout, ScOptions { common_after: common_after(1), ..ScOptions::default() })
}

/// The same for the second time.
fn holding_and_common(layout: Layout) -> Sc {
    let (hold, common_after) = (Some(Duration::ZERO), common_after(2));
    Sc::new(layout, ScOptions { hold, common_after, ..ScOptions::default() })
}

/// Pages are common as soon as they are touched.
fn common_at_once(layout: Layout) -> Sc {
    Sc::new(layout, ScOptions { common_after: Some(CommonAfter::Touch), ..ScOptions::default() })
}

const MACHINES: [fn(Layout) -> Sc; 5] = [machine, holding, common, holding_and_common, common_at_once];

/// Checks a program with and without holding and common pages, with and without bringing pages ahead, with each set of managers.
fn check_all(nodes: usize, threads: &[(usize, &[Op])], change: impl Fn(&mut Schedules<Sc>)) {
    for machine in MACHINES {
        for (manager, ahead) in [(None, 0), (None, 1), (Some(0), 1), (Some(1), 0)] {
            let mut schedules = Schedules::new(nodes, 2, threads, machine).with(|setup| {
                setup.manager = manager;
                setup.ahead = ahead;
            });
            change(&mut schedules);
            schedules.check();
        }
    }
}

#[test]
fn message_passing() {
    let (writer, reader) = ([Read(X), Write(X, 1), Write(Y, 1)], [Read(X), Read(Y), Read(X)]);
    check_all(2, &[(0, &writer), (1, &reader)], |model| {
        model.forbidden = |world| world.threads[1].read[1..] == [1, 0];
        model.possible = |world| world.threads[1].read == [0, 1, 1];
    });
}

#[test]
fn store_buffering() {
    let (a, b) = ([Write(X, 1), Read(Y)], [Write(Y, 1), Read(X)]);
    check_all(2, &[(0, &a), (1, &b)], |model| {
        model.forbidden = |world| world.threads[0].read == [0] && world.threads[1].read == [0];
        model.possible = |world| world.threads[0].read == [1] && world.threads[1].read == [1];
    });
    check_all(3, &[(2, &a), (1, &b)], |model| {
        model.forbidden = |world| world.threads[0].read == [0] && world.threads[1].read == [0];
        model.possible = |world| world.threads[0].read == [0] && world.threads[1].read == [1];
    });
}

#[test]
fn load_buffering() {
    let (a, b) = ([Read(X), Write(Y, 1)], [Read(Y), Write(X, 1)]);
    check_all(2, &[(0, &a), (1, &b)], |model| {
        model.forbidden = |world| world.threads[0].read == [1] && world.threads[1].read == [1];
        model.possible = |world| world.threads[0].read == [0] && world.threads[1].read == [1];
    });
}

/// Two readers agree about the order of two independent writes.
#[test]
fn independent_reads_of_independent_writes() {
    let (x, y) = ([Write(X, 1)], [Write(Y, 1)]);
    let (xy, yx) = ([Read(X), Read(Y)], [Read(Y), Read(X)]);
    for manager in [None, Some(0)] {
        let mut model = Schedules::new(4, 2, &[(0, &x), (1, &y), (2, &xy), (3, &yx)], machine);
        model.setup.manager = manager;
        model.forbidden = |world| world.threads[2].read == [1, 0] && world.threads[3].read == [1, 0];
        model.possible = |world| world.threads[2].read == [1, 0] && world.threads[3].read == [1, 1];
        model.check();
    }
}

/// Checks a program of three threads on as many nodes, with and without holding and common pages.
fn check_three(threads: [&[Op]; 3], change: impl Fn(&mut Schedules<Sc>)) {
    for machine in MACHINES {
        let threads = [(0, threads[0]), (1, threads[1]), (2, threads[2])];
        let mut schedules = Schedules::new(3, 2, &threads, machine);
        change(&mut schedules);
        schedules.check();
    }
}

/// Who sees a write and then writes, shows both to a third one.
#[test]
fn causality_over_three_nodes() {
    check_three([&[Write(X, 1)], &[Read(X), Write(Y, 1)], &[Read(Y), Read(X)]], |model| {
        model.forbidden = |world| world.threads[1].read == [1] && world.threads[2].read == [1, 0];
        model.possible = |world| world.threads[1].read == [1] && world.threads[2].read == [1, 1];
    });
    // The same in one direction and back: a reader that is early makes the third one's write late.
    check_three([&[Write(X, 1)], &[Read(X), Read(Y)], &[Write(Y, 1), Read(X)]], |model| {
        model.forbidden = |world| world.threads[1].read == [1, 0] && world.threads[2].read == [0];
        model.possible = |world| world.threads[1].read == [1, 0] && world.threads[2].read == [1];
    });
}

/// Nodes that write two variables in opposite orders leave what one order of all writes leaves.
#[test]
fn two_writes_each() {
    check_all(2, &[(0, &[Write(X, 1), Write(Y, 2)]), (1, &[Write(Y, 1), Write(X, 2)])], |model| {
        model.forbidden = |world| world.at(X) == 1 && world.at(Y) == 1;
        model.possible = |world| world.at(X) == 2 && world.at(Y) == 2;
    });
}

/// Additions in one instruction: none is lost, and each reads what no other one does.
#[test]
fn additions_of_three_nodes() {
    check_three([&[Add(X, 1), Add(Y, 1)], &[Add(X, 1), Add(Y, 1)], &[Add(X, 1)]], |model| {
        model.forbidden = |world| world.at(X) != 3 || world.at(Y) != 2;
        model.possible = |world| world.threads[2].read == [0] && world.threads[0].read == [2, 0];
    });
}

/// Store buffering and message passing by such additions.
#[test]
fn additions_keep_the_order_of_others() {
    check_all(2, &[(0, &[Add(X, 1), Read(Y)]), (1, &[Add(Y, 1), Read(X)])], |model| {
        model.forbidden = |world| world.threads[0].read == [0, 0] && world.threads[1].read == [0, 0];
        model.possible = |world| world.threads[0].read == [0, 1] && world.threads[1].read == [0, 1];
    });
    check_three([&[Write(X, 1), Add(Y, 1)], &[Add(Y, 1)], &[Read(Y), Read(X)]], |model| {
        model.forbidden = |world| world.threads[2].read == [2, 0];
        model.possible = |world| world.threads[2].read == [2, 1];
    });
}

#[test]
fn three_nodes_write_one_page() {
    let programs = [[Read(X), Write(X, 1)], [Write(1, 2), Read(X)], [Write(X, 3), Read(1)]];
    for machine in MACHINES {
        let threads = [(0, &programs[0][..]), (1, &programs[1][..]), (2, &programs[2][..])];
        Schedules::new(3, 1, &threads, machine).check();
    }
}

#[test]
fn two_threads_of_one_node_and_one_of_another() {
    let (a, b, c) =
        ([Read(X), Write(X, 1)], [Write(1, 2), Read(X)], [Lock(0), Read(X), Write(X, 3), Unlock(0)]);
    check_all(2, &[(0, &a), (0, &b), (1, &c)], |_| ());
    check_all(2, &[(1, &a), (1, &b), (0, &c)], |_| ());
}

/// The manager, a node that uses the pages and one that does not are told to manage them.
#[test]
fn a_policy_decides_the_manager() {
    let (a, b) = ([Read(X), Write(X, 1), Read(Y)], [Write(Y, 1), Read(X), Write(1, 2)]);
    for machine in MACHINES {
        for (first, second) in [(0, 0), (1, 2), (2, 1), (2, 2)] {
            Schedules::new(3, 2, &[(0, &a), (1, &b)], machine)
                .with(|setup| {
                    (setup.manager, setup.ahead) = (Some(0), 1);
                    setup.placed = vec![Some(first), Some(second)];
                    setup.given = first == 2;
                })
                .check();
        }
    }
}

#[test]
fn a_policy_decides_about_pages_in_use() {
    for machine in MACHINES {
        for home in [None, Some(0), Some(1), Some(2)] {
            let a = [Read(X), Place { first: 0, count: 1, home, used: true }, Write(X, 1)];
            let b = [Write(X, 2), Place { first: 0, count: 1, home: Some(1), used: true }];
            Schedules::new(3, 1, &[(0, &a), (1, &b), (2, &[Write(1, 3), Read(X)])], machine).check();
        }
    }
}

#[test]
fn a_policy_decides_about_pages_that_were_brought_ahead() {
    for home in [0, 1, 2] {
        let place = Place { first: 1, count: 1, home: Some(home), used: false };
        let (a, b) = ([place, Barrier, Read(Y)], [Write(X, 1), Barrier, Write(3, 1)]);
        Schedules::new(3, 2, &[(0, &a), (1, &b), (2, &[Read(1), Barrier, Write(Y, 1)])], machine)
            .with(|setup| (setup.manager, setup.ahead) = (Some(0), 1))
            .check();
    }
}

fn many_programs(seeds: std::ops::Range<u64>, steps: usize) {
    for seed in seeds {
        let mut rng = Rng(seed);
        let nodes: &[usize] = [&[0, 1, 2][..], &[0, 0, 1], &[1, 0, 1], &[0, 1], &[1, 2]][rng.below(5)];
        let threads: Vec<(usize, &[Op])> = nodes.iter().map(|&node| (node, &[][..])).collect();
        let machine = MACHINES[rng.below(MACHINES.len())];
        Schedules::new(3, 1 + rng.below(2), &threads, machine)
            .with(|setup| {
                setup.ahead = u32::try_from(rng.below(2)).unwrap();
                // A third thread would have too many schedules.
                setup.stride = u32::from(nodes.len() == 2 && rng.chance(50));
                programs::racy(setup, steps, seed);
            })
            .check();
    }
}

#[test]
fn many_small_programs() {
    many_programs(0..20, 3);
}

#[test]
#[ignore = "minutes"]
fn many_larger_programs() {
    many_programs(0..60, 5);
}
