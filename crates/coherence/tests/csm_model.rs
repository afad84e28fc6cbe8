//! Every schedule of small race-free programs on `csm` machines: all reads return what happens-before says, nothing
//! gets stuck, and in the end directory, states and protections of the nodes agree.

use gondwana_coherence::{CommonAfter, Csm, CsmOptions, Layout};
use gondwana_testbed::model::Schedules;
use gondwana_testbed::programs;
use gondwana_testbed::setup::Op::{self, Barrier, Expose, Lock, Place, Read, Unlock, Write};
use gondwana_testbed::setup::{Setup, common_after};

fn machine(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions::default())
}

fn fixed_homes(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { migrate: false, ..CsmOptions::default() })
}

/// Pages become common at the first change that others are told of.
fn common(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { common_after: common_after(1), ..CsmOptions::default() })
}

/// The same at the second, with pages that stay writable for long.
fn common_later(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { common_after: common_after(2), keep: 2, ..CsmOptions::default() })
}

/// Pages are common as soon as they are touched.
fn common_at_once(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { common_after: Some(CommonAfter::Touch), ..CsmOptions::default() })
}

/// Right even for programs that synchronise by plain loads and stores.
fn ordered(layout: Layout) -> Csm {
    Csm::new(layout, CsmOptions { ordered: true, ..CsmOptions::default() })
}

const MACHINES: [fn(Layout) -> Csm; 6] =
    [machine, fixed_homes, common, common_later, common_at_once, ordered];

/// Reads and writes a byte under lock 0.
const fn update(address: usize, value: u8) -> [Op; 4] {
    [Lock(0), Read(address), Write(address, value), Unlock(0)]
}

#[test]
fn two_nodes_update_one_byte_by_turns() {
    let (a, b) = ([update(0, 1), update(0, 2)].concat(), [update(0, 3), update(0, 4)].concat());
    for machine in MACHINES {
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).check();
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).with(|setup| setup.lazy = true).check();
    }
}

#[test]
fn two_nodes_write_neighbouring_bytes_and_read_the_others() {
    let a = [Write(0, 1), Barrier, Read(1), Barrier, Write(0, 2), Barrier, Read(1)];
    let b = [Write(1, 3), Barrier, Read(0), Barrier, Write(1, 4), Barrier, Read(0)];
    for machine in MACHINES {
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).check();
        Schedules::new(3, 1, &[(1, &a), (2, &b)], machine).check();
    }
}

/// Long enough for the page to stay writable over releases, and to become an ordinary page again.
#[test]
fn two_nodes_go_on_writing_a_page() {
    fn keeps_for_one(layout: Layout) -> Csm {
        Csm::new(layout, CsmOptions { keep: 1, migrate: false, ..CsmOptions::default() })
    }
    fn keeps_for_four(layout: Layout) -> Csm {
        Csm::new(layout, CsmOptions { keep: 4, ..CsmOptions::default() })
    }
    let round = |mine: usize, value| [Write(mine, value), Barrier, Read(1 - mine), Barrier];
    let a = [&round(0, 1)[..], &round(0, 2), &round(0, 1), &[Barrier, Read(1)]].concat();
    let b = [&round(1, 3)[..], &round(1, 4), &round(1, 5), &[Barrier, Read(0)]].concat();
    for machine in [keeps_for_one, keeps_for_four] {
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).check();
        Schedules::new(3, 1, &[(1, &a), (2, &b)], machine).check();
    }
}

/// Long enough for what both write between barriers to be exchanged as diffs.
#[test]
fn two_nodes_exchange_what_both_write() {
    fn machine(layout: Layout) -> Csm {
        Csm::new(layout, CsmOptions { updates: 2, ..CsmOptions::default() })
    }
    // Each interval has bytes of its own, which the others read in the next one.
    let round = |node: usize, round: usize| {
        let (mine, others) = (2 * (round % 2) + node, 2 * ((round + 1) % 2) + 1 - node);
        let value = u8::try_from(round).expect("there are few rounds");
        [Read(others), Write(mine, value + 1), Barrier]
    };
    let rounds = |node, count| (0..count).flat_map(|number| round(node, number)).collect::<Vec<_>>();
    for lazy in [false, true] {
        let (a, b) = (rounds(0, 6), rounds(1, 6));
        let change = |setup: &mut Setup| (setup.page_size, setup.lazy) = (4, lazy);
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).with(change).check();
    }
}

/// A byte changes while a neighbour is dirty on another node, and back to its old value.
#[test]
fn a_value_that_comes_back_is_not_taken_for_unchanged() {
    let a = [Lock(0), Write(0, 1), Unlock(0), Lock(0), Write(0, 0), Unlock(0)];
    let b = [Write(1, 5), Lock(0), Read(0), Unlock(0), Write(1, 6), Lock(0), Read(0), Unlock(0), Read(1)];
    for machine in MACHINES {
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).check();
    }
}

/// Two threads of one node: one acquires and releases while the other fetches and writes.
#[test]
fn threads_of_one_node_disturb_each_other() {
    let a = [Lock(0), Write(0, 1), Unlock(0)];
    let b = [Lock(1), Write(1, 2), Unlock(1), Lock(1), Read(1), Unlock(1)];
    let c = [Lock(0), Read(0), Write(0, 3), Unlock(0), Lock(1), Read(1), Unlock(1)];
    for machine in MACHINES {
        Schedules::new(2, 1, &[(0, &a), (0, &b), (1, &c)], machine).check();
        Schedules::new(2, 1, &[(1, &a), (1, &b), (0, &c)], machine).check();
    }
}

/// What the first node wrote reaches the third by way of the second.
#[test]
fn causality_through_a_third_node() {
    let a = [Lock(0), Write(0, 1), Unlock(0)];
    let b = [Lock(0), Read(0), Unlock(0), Lock(1), Write(1, 2), Unlock(1)];
    let c = [Lock(1), Read(1), Unlock(1), Lock(0), Read(0), Unlock(0)];
    for machine in [machine, common, common_later, ordered] {
        Schedules::new(3, 1, &[(0, &a), (1, &b), (2, &c)], machine).check();
    }
}

/// A third node has a copy that two others change one after the other, under different locks.
#[test]
fn a_notice_on_its_way_is_waited_for_by_later_releases() {
    let a = [Read(1), Lock(0), Write(0, 1), Unlock(0)];
    let b = [Lock(1), Write(2, 2), Unlock(1)];
    let c = [Lock(1), Read(2), Unlock(1), Lock(0), Read(0), Unlock(0)];
    for machine in [machine, common, common_later, ordered] {
        Schedules::new(3, 2, &[(0, &a), (1, &b), (2, &c)], machine).with(|setup| setup.ahead = 1).check();
    }
}

/// The home moves while a copy is on its way from the old one, and a notice from the new one comes first.
#[test]
fn a_notice_overtakes_an_older_answer() {
    let a = [Lock(1), Write(1, 1), Unlock(1), Lock(1), Write(1, 2), Unlock(1)];
    let b = [Lock(0), Read(0), Write(0, 5), Unlock(0)];
    let (c, d) = ([Read(2)], [Lock(1), Read(1), Unlock(1)]);
    for machine in [machine, common, common_later, ordered] {
        Schedules::new(3, 1, &[(0, &a), (1, &b), (2, &c), (2, &d)], machine)
            .with(|setup| setup.page_size = 3)
            .check();
    }
}

/// The manager, a node that uses the page and one that does not are told to be its home.
#[test]
fn a_policy_decides_the_home_before_anybody_uses_the_page() {
    let (a, b) = ([update(0, 1), update(0, 2)].concat(), [update(0, 3), update(0, 4)].concat());
    for machine in MACHINES {
        for (home, given) in (0..3).flat_map(|home| [(home, false), (home, true)]) {
            let threads = [(0, &a[..]), (1, &b)];
            Schedules::new(3, 1, &threads, machine)
                .with(|setup| (setup.placed, setup.given) = (vec![Some(home)], given))
                .check();
        }
    }
}

/// Node 2 makes the manager give page 1 to node 1, while that asks for it ahead of page 0 or by itself.
#[test]
fn a_page_is_given_to_a_node_that_asks_for_it() {
    let (a, b) = ([Write(0, 1), Lock(0), Read(2), Unlock(0)], [Lock(0), Write(2, 2), Unlock(0), Read(3)]);
    for first in [None, Some(1), Some(2)] {
        Schedules::new(3, 2, &[(1, &a), (2, &b)], machine)
            .with(|setup| {
                (setup.manager, setup.ahead) = (Some(0), 1);
                setup.placed = vec![first, Some(1)];
                setup.given = first == Some(2);
            })
            .check();
    }
}

/// Page 1 was brought ahead before it is first allocated and its home decided.
#[test]
fn a_policy_decides_about_pages_that_were_brought_ahead() {
    for home in [0, 1, 2] {
        let place = Place { first: 1, count: 1, home: Some(home), used: false };
        let (a, b) = ([place, Barrier, Lock(0), Read(2), Unlock(0)], [Write(0, 1), Barrier, Write(3, 1)]);
        let c = [Read(1), Barrier, Lock(0), Write(2, 1), Unlock(0)];
        Schedules::new(3, 2, &[(0, &a), (1, &b), (2, &c)], machine)
            .with(|setup| (setup.manager, setup.ahead) = (Some(0), 1))
            .check();
    }
}

#[test]
fn a_policy_decides_about_pages_in_use() {
    for home in [None, Some(0), Some(1), Some(2)] {
        let place = Place { first: 0, count: 1, home, used: true };
        let a = [&[place][..], &update(0, 1), &update(0, 2)].concat();
        let b = [&update(0, 3)[..], &[Place { first: 0, count: 1, home: Some(1), used: true }]].concat();
        for machine in [machine, common] {
            Schedules::new(3, 1, &[(0, &a), (1, &b), (2, &update(0, 4))], machine).check();
        }
    }
}

/// Two nodes write a page that the third has used alone, while that goes on writing it.
#[test]
fn a_page_goes_to_whoever_writes_it_first() {
    let a = [Write(0, 1), Expose, Barrier, Lock(0), Write(0, 2), Unlock(0), Lock(0), Read(1), Unlock(0)];
    let b = [Barrier, Lock(0), Read(0), Write(1, 3), Unlock(0)];
    let c = [Barrier, Lock(0), Read(1), Write(1, 4), Unlock(0)];
    for threads in
        [&[(0, &a[..]), (1, &b), (2, &c)][..], &[(0, &a), (0, &b), (1, &c)], &[(0, &a), (1, &b), (1, &c)]]
    {
        for manager in [Some(0), Some(2)] {
            for (lazy, exposed) in [(false, false), (false, true), (true, true)] {
                let without = |(node, ops): (usize, &[Op])| {
                    (node, ops.iter().copied().filter(|&op| exposed || op != Expose).collect::<Vec<_>>())
                };
                let threads: Vec<_> = threads.iter().copied().map(without).collect();
                let threads: Vec<(usize, &[Op])> =
                    threads.iter().map(|(node, ops)| (*node, &ops[..])).collect();
                Schedules::new(3, 1, &threads, machine)
                    .with(|setup| (setup.manager, setup.lazy) = (manager, lazy))
                    .check();
            }
        }
    }
}

/// Many programs with every schedule of each. Threads are on two or three nodes.
fn many_programs(seeds: impl Iterator<Item = u64>, sections: usize) {
    for seed in seeds {
        let nodes: &[usize] = [&[0, 1, 2][..], &[0, 0, 1], &[1, 0, 1], &[0, 1], &[1, 2]][(seed % 5) as usize];
        let threads: Vec<(usize, &[Op])> = nodes.iter().map(|&node| (node, &[][..])).collect();
        let pages = 1 + (seed / 5 % 2) as usize;
        let machine = match seed % 7 {
            0 => fixed_homes,
            1 | 2 => common,
            3 => common_later,
            _ => machine,
        };
        Schedules::new(3, pages, &threads, machine)
            .with(|setup| {
                setup.lazy = seed % 3 == 0;
                setup.ahead = (seed / 10 % 2) as u32;
                // A third thread would have too many schedules.
                setup.stride = u32::from(seed % 5 > 2);
                programs::sections(setup, sections, seed);
                if seed % 2 == 0 {
                    programs::expose_anywhere(setup, 1, seed);
                }
                if seed % 4 == 0 {
                    setup.placed = vec![Some((seed / 4 % 3) as u16); pages];
                }
            })
            .check();
    }
}

#[test]
fn many_small_programs() {
    many_programs(0..60, 2);
}

#[test]
#[ignore = "minutes"]
fn many_larger_programs() {
    many_programs(60..400, 2);
    // Three sections in each of three threads have too many schedules.
    many_programs((0..100).filter(|seed| seed % 5 > 2), 3);
}
