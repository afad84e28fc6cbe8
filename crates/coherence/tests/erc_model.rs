//! Every schedule of small race-free programs on `erc` machines: all reads return what happens-before says, nothing gets
//! stuck, and in the end managers, owners, states and protections of the nodes agree.
//!
//! Pages have two bytes: address 0 and 1 are in page 0, address 2 in page 1.

use gondwana_coherence::{Erc, ErcOptions, Layout};
use gondwana_testbed::model::Schedules;
use gondwana_testbed::programs;
use gondwana_testbed::setup::Op::{self, Barrier, Lock, Read, Unlock, Write};

fn machine(layout: Layout) -> Erc {
    Erc::new(layout, ErcOptions::default())
}

fn holding(layout: Layout) -> Erc {
    Erc::new(layout, ErcOptions { hold: true })
}

/// Reads and writes a byte under lock 0.
const fn update(address: usize, value: u8) -> [Op; 4] {
    [Lock(0), Read(address), Write(address, value), Unlock(0)]
}

#[test]
fn two_nodes_update_one_byte_by_turns() {
    let (a, b) = ([update(0, 1), update(0, 2)].concat(), [update(0, 3), update(0, 4)].concat());
    for machine in [machine, holding] {
        for lazy in [false, true] {
            Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).with(|setup| setup.lazy = lazy).check();
        }
        Schedules::new(3, 1, &[(1, &a), (2, &b)], machine).check();
    }
}

/// One page has two writers and a reader: it goes to and fro, and the reader's copy is given up each time.
#[test]
fn neighbouring_bytes_are_written_and_read() {
    let a = [Write(0, 1), Barrier, Read(1), Write(0, 2), Barrier, Barrier, Read(1)];
    let b = [Write(1, 3), Barrier, Read(1), Barrier, Write(1, 4), Read(0), Barrier];
    let c = [Read(2), Barrier, Read(1), Barrier, Read(0), Barrier];
    for machine in [machine, holding] {
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).check();
        Schedules::new(3, 2, &[(1, &a), (2, &b), (0, &c)], machine).check();
    }
}

/// The owner writes on beside its readers until it releases.
#[test]
fn readers_lose_their_copies_at_the_release() {
    let a = [Lock(0), Write(0, 1), Unlock(0), Write(1, 7), Lock(0), Write(0, 2), Unlock(0)];
    let b = [Lock(0), Read(0), Unlock(0), Lock(0), Read(0), Unlock(0)];
    for machine in [machine, holding] {
        Schedules::new(2, 1, &[(0, &a), (1, &b)], machine).with(|setup| setup.manager = Some(1)).check();
        let mut model = Schedules::new(3, 1, &[(0, &a), (1, &b), (2, &b)], machine);
        model.possible = |world| world.threads[1].read == [1, 2] && world.threads[2].read == [0, 2];
        model.check();
    }
}

/// Two threads of one node: one acquires and releases while the other fetches and writes.
#[test]
fn threads_of_one_node_disturb_each_other() {
    let a = [Lock(0), Write(0, 1), Unlock(0)];
    let b = [Lock(1), Write(1, 2), Unlock(1), Lock(1), Read(1), Unlock(1)];
    let c = [Lock(0), Read(0), Write(0, 3), Unlock(0), Lock(1), Read(1), Unlock(1)];
    for machine in [machine, holding] {
        Schedules::new(2, 1, &[(0, &a), (0, &b), (1, &c)], machine).check();
    }
}

fn many_programs(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let nodes: &[usize] = [&[0, 1, 2][..], &[0, 0, 1], &[0, 1], &[1, 2]][(seed % 4) as usize];
        let threads: Vec<(usize, &[Op])> = nodes.iter().map(|&node| (node, &[][..])).collect();
        let machine = if seed % 3 == 0 { holding } else { machine };
        Schedules::new(3, 1 + (seed / 4 % 2) as usize, &threads, machine)
            .with(|setup| {
                setup.lazy = seed % 5 == 0;
                setup.ahead = (seed / 2 % 2) as u32;
                setup.manager = [None, Some(0), Some(1)][(seed % 3) as usize];
                programs::sections(setup, 2, seed);
            })
            .check();
    }
}

#[test]
fn many_small_programs() {
    many_programs(0..24);
}

#[test]
#[ignore = "minutes"]
fn many_more_programs() {
    many_programs(24..200);
}
