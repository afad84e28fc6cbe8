//! Pages that move and are replicated: three nodes of two processors, as in the other sequences, with pages of two lines.

use crate::{INVALIDATION, LOCAL, MACHINE, REMOTE, REMOTE_CACHE, Simulated, THREE_HOP};
use gondwana_coherence::directory::State::{Invalid, Modified, Owned, Shared};
use gondwana_sim::{Description, Kind, Machine, NANOSECOND, NodeReplication};

/// From a local to a global address, and back.
const LPA2GA: u64 = 7;
const GA2LPA: u64 = 500;
/// An owner that gives a line up supplies it, which takes its bus and its memory, where a sharer only answers.
const OWNER_SUPPLIES: u64 = 200 + 5_000;

/// The daemon looks each time that time has passed in these sequences; each access comes 10 ms after the last one.
pub(crate) fn machine(more: &str) -> Simulated {
    let text = MACHINE.replace("page_size = 4096", "page_size = 1024");
    Simulated::of(&format!(
        "{text}
        [replication]
        period = 1_000
        threshold = 2
        look = 100
        page = 2_000
        lpa2ga = {LPA2GA}
        ga2lpa = {GA2LPA}
        {more}"
    ))
}

fn done(machine: &Simulated, node: usize) -> NodeReplication {
    machine.0.statistics(&Description::parse(MACHINE).unwrap(), 0).nodes[node].replication.clone()
}

/// Lets the daemon do what is due on a processor; returns the time that it takes, in ns.
pub(crate) fn daemon(machine: &mut Simulated, processor: usize) -> u64 {
    let latest = (0..6).map(|other| machine.0.now(other)).max().unwrap();
    let start = latest + 10_000_000 * NANOSECOND;
    machine.0.port(processor).grant(start, start);
    // Memory that nobody uses otherwise.
    while machine.0.attend(processor, 1 << 40, 4) {
        machine.0.check().unwrap();
        if machine.0.now(processor) - start > 9_000_000 * NANOSECOND {
            break;
        }
    }
    (machine.0.now(processor) - start) / NANOSECOND
}

/// Node 1 reads lines 0, 128 and 256, which are in one set of two ways, so many times.
pub(crate) fn excess(machine: &mut Simulated, rounds: usize) {
    for _ in 0..rounds {
        for line in [0, 2, 4] {
            machine.0.access(2, line * 64, 4, Kind::Read);
        }
    }
    machine.0.check().unwrap();
}

#[test]
fn a_page_moves_to_the_node_that_misses() {
    let mut machine = machine("");
    for line in [0, 2, 4] {
        machine.read(0, line * 64);
    }
    excess(&mut machine, 1);
    assert_eq!(done(&machine, 1).excess, 0, "cold");
    excess(&mut machine, 1);
    assert_eq!(done(&machine, 1).excess, 3, "page 0 has all three lines");
    // The first look, then the page: the caches of nodes 0 and 1 lose two lines each, by their buses; the bus and the
    // memory read 16 lines, a link brings them, the bus and the memory of node 1 take them.
    let flushed = 200;
    let copied = 200 + 5_000 + 100_000 + 200 + 5_000;
    assert_eq!(daemon(&mut machine, 5), 100 + flushed + copied + 2_000);
    assert_eq!((done(&machine, 1).migrated, done(&machine, 1).replicated), (1, 0));
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Modified, Invalid]);
    assert_eq!(machine.0.cache_state(0, 0), Invalid);
    assert_eq!(machine.read(2, 0), LOCAL);
    assert_eq!(machine.read(0, 0), REMOTE);
}

#[test]
fn what_a_node_has_written_goes_home_before_its_page_moves() {
    let mut machine = machine("");
    machine.read(0, 0);
    machine.write(4, 64);
    excess(&mut machine, 3);
    assert_eq!(machine.0.node_state(64, 2), Some(Modified));
    daemon(&mut machine, 0);
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(64, node).unwrap()), [Invalid, Modified, Invalid]);
    assert_eq!(machine.0.cache_state(64, 4), Invalid);
    assert_eq!(machine.read(3, 64), LOCAL);
}

/// Node 1 has a replica of page 0, whose home is node 0.
fn replicated(more: &str) -> Simulated {
    let mut machine = machine(&format!("migrations = 0\n{more}"));
    machine.read(0, 0);
    excess(&mut machine, 2);
    daemon(&mut machine, 0);
    assert_eq!((done(&machine, 1).replicas, done(&machine, 1).migrated), (1, 0));
    machine
}

#[test]
fn blocks_come_to_a_replica_as_they_are_missed() {
    let mut machine = replicated("");
    assert_eq!(machine.0.cache_state(0, 2), Invalid, "the page has another address in the node now");
    assert_eq!(machine.read(2, 0), REMOTE + LPA2GA);
    assert_eq!(machine.read(3, 0), LOCAL, "for all processors of the node, as processor 2 does not own it");
    assert_eq!(machine.read(2, 64), REMOTE + LPA2GA, "blocks come alone");
    for line in [2, 4] {
        assert_eq!(machine.read(2, line * 64), REMOTE + LPA2GA);
    }
    assert_eq!(machine.read(2, 0), LOCAL, "no longer in the second cache");
    assert_eq!(done(&machine, 1).served, 2);
    assert_eq!(machine.read(4, 0), REMOTE, "node 2 has none");
}

#[test]
fn a_replica_takes_what_is_written() {
    let mut machine = replicated("");
    assert_eq!(machine.write(2, 0), REMOTE + LPA2GA);
    for line in [2, 4] {
        machine.read(2, line * 64);
    }
    let counters = machine.counters();
    assert_eq!((counters.written_back, machine.0.cache_state(0, 2)), ([1, 0, 0], Invalid));
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Modified, Invalid]);
    assert_eq!(machine.write(3, 0), LOCAL, "the node still owns it");
    for line in [2, 4] {
        machine.read(3, line * 64);
    }
    // The replica supplies a third node; and gives the block up when that one writes.
    assert_eq!(machine.read(4, 0), THREE_HOP - 3_000 + 5_000 + GA2LPA);
    assert_eq!(machine.read(3, 0), LOCAL);
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Owned, Shared]);
    assert_eq!(machine.write(5, 0), INVALIDATION + GA2LPA + OWNER_SUPPLIES);
    assert_eq!(machine.read(3, 0), THREE_HOP + LPA2GA);
}

#[test]
fn the_home_takes_its_block_back() {
    let mut machine = replicated("");
    machine.write(2, 0);
    assert_eq!(machine.write(0, 0), REMOTE_CACHE + GA2LPA);
    assert_eq!(machine.read(2, 0), REMOTE_CACHE + LPA2GA);
    assert_eq!([0, 1].map(|node| machine.0.node_state(0, node).unwrap()), [Owned, Shared]);
    // An upgrade of the node's own copy.
    let upgrade = machine.write(2, 0);
    assert_eq!(upgrade, REMOTE_CACHE + LPA2GA, "the owner supplies anyway");
    assert_eq!(machine.0.node_state(0, 1), Some(Modified));
}

#[test]
fn a_page_that_has_moved_is_replicated_at_the_next_node() {
    let mut machine = machine("");
    machine.read(0, 0);
    excess(&mut machine, 2);
    daemon(&mut machine, 0);
    for _ in 0..2 {
        for line in [0, 2, 4] {
            machine.0.access(0, line * 64, 4, Kind::Read);
        }
    }
    daemon(&mut machine, 2);
    assert_eq!((done(&machine, 1).migrated, done(&machine, 0).migrated), (1, 0));
    assert_eq!((done(&machine, 0).replicated, done(&machine, 0).replicas), (1, 1));
    assert_eq!(machine.read(1, 0), REMOTE + LPA2GA);
    assert_eq!(machine.read(0, 0), LOCAL);
    assert_eq!(machine.read(3, 0), LOCAL, "the home");
}

#[test]
fn a_replica_makes_room_for_pages_of_the_program() {
    // Three pages of memory.
    let mut machine = replicated("memory = 3_072");
    machine.write(2, 0);
    for page in 8..10 {
        machine.read(2, page * 1024);
    }
    daemon(&mut machine, 4);
    assert_eq!(done(&machine, 1).given_up, 0, "two of its own, and the replica");
    machine.read(3, 10 * 1024);
    daemon(&mut machine, 4);
    let NodeReplication { given_up, replicas, .. } = done(&machine, 1);
    assert_eq!((given_up, replicas), (1, 0));
    assert_eq!(
        [0, 1].map(|node| machine.0.node_state(0, node).unwrap()),
        [Modified, Invalid],
        "it went home"
    );
    assert_eq!(machine.read(0, 0), LOCAL);
    assert_eq!(machine.read(2, 0), REMOTE, "no translation any more");
}

#[test]
fn processors_wait_for_a_page_that_is_on_the_move() {
    let mut machine = machine("");
    machine.read(0, 0);
    excess(&mut machine, 2);
    let start = 1_000_000_000 * NANOSECOND;
    let others = |machine: &mut Machine, processor: usize, address: u64| {
        machine.port(processor).grant(start + 150 * NANOSECOND, start);
        let waits = machine.attend(processor, address, 4);
        (waits, (machine.now(processor) - start) / NANOSECOND)
    };
    machine.0.port(5).grant(start, start);
    assert!(machine.0.attend(5, 1 << 40, 4), "the look");
    assert!(machine.0.attend(5, 1 << 40, 4), "the move");
    let end = (machine.0.now(5) - start) / NANOSECOND;
    assert_eq!(others(&mut machine.0, 0, 512), (true, end));
    assert_eq!(others(&mut machine.0, 2, 1022), (true, end), "an access that crosses pages");
    assert_eq!(others(&mut machine.0, 3, 4096), (false, 150), "another page");
    let nodes = machine.0.statistics(&Description::parse(MACHINE).unwrap(), 0).nodes;
    let stalled: Vec<u64> = nodes.iter().map(|node| node.counters.system_stalled / NANOSECOND).collect();
    assert_eq!(stalled, [end - 150, end - 150, end]);
}

#[test]
fn without_a_period_there_is_none() {
    let mut machine = machine("").0;
    assert!({
        machine.port(0).grant(2_000 * NANOSECOND, 0);
        machine.attend(0, 0, 4)
    });
    let text = MACHINE.to_owned()
        + "[replication]\nperiod = 0\nthreshold = 1\nlook = 1\npage = 1\nlpa2ga = 1\nga2lpa = 1";
    let mut machine = Simulated::of(&text).0;
    machine.port(0).grant(2_000 * NANOSECOND, 0);
    assert!(!machine.attend(0, 0, 4));
}

/// Random accesses with a daemon that always has something to do, and memory that is scarce: caches, directory, replicas and
/// far memory caches agree after each, and twice the same accesses give the same counts and times.
#[test]
fn random_accesses() {
    let far = "[far_cache]\nsize = 1024\nline = 128\nways = 2\nlatency = 10\noccupancy = 0";
    for (seed, more) in (1_u64..).zip([
        "memory = 4_096",
        "migrations = 0",
        "migrations = 3\ncounters = 2\npages = 1",
        &format!("migrations = 1\nmemory = 4_096\n{far}"),
    ]) {
        let run = || {
            let mut machine = machine(more);
            let mut random = seed;
            for _ in 0..4_000 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let (processor, line) = ((random % 6) as usize, random / 6 % 128);
                let kind = if random >> 40 & 3 == 0 { Kind::Write } else { Kind::Read };
                let now = machine.0.now(processor);
                machine.0.port(processor).grant(now, now);
                while machine.0.attend(processor, line * 64, 4) {}
                machine.0.access(processor, line * 64, 4, kind);
                machine.0.check().unwrap();
            }
            machine.0.statistics(&Description::parse(MACHINE).unwrap(), 0)
        };
        let statistics = run();
        assert_eq!(statistics, run());
        let sum = |get: fn(&NodeReplication) -> u64| -> u64 {
            statistics.nodes.iter().map(|node| get(&node.replication)).sum()
        };
        let counts = [sum(|of| of.replicated), sum(|of| of.served), sum(|of| of.excess)];
        assert!(counts.into_iter().all(|count| count > 10), "{more}: {counts:?}");
        let given_up = sum(|of| of.given_up);
        assert!(!more.contains("memory") || given_up > 10, "{more}: {given_up} of {counts:?}");
        assert_eq!(sum(|of| of.migrated) == 0, more.contains("migrations = 0"), "{more}");
    }
}
