//! Far memory caches: two sets of two blocks, each of two lines of the second caches.

use crate::{INVALIDATION, LOCAL, LOCAL_CACHE, REMOTE, REMOTE_CACHE, Simulated, THREE_HOP};
use gondwana_coherence::directory::State::{Invalid, Modified, Owned, Shared};
use gondwana_sim::{Cause, Kind, Supply};

/// L2, bus, far memory cache.
const FAR: u64 = 10 + 200 + 1_000;
/// A far memory cache of another node supplies, where a processor's cache does in the others.
const REMOTE_FAR: u64 = REMOTE_CACHE - 3_000 + 1_000;
const THREE_HOP_FAR: u64 = THREE_HOP - 3_000 + 1_000;

fn machine_of(far_cache: &str) -> Simulated {
    Simulated::with("l1 = {", &format!("far_cache = {{ {far_cache} }}\n    l1 = {{"))
}

fn machine() -> Simulated {
    machine_of("size = 512, line = 128, ways = 2, latency = 1_000, occupancy = 0")
}

fn states(machine: &Simulated, address: u64) -> [gondwana_coherence::directory::State; 3] {
    [0, 1, 2].map(|node| machine.0.node_state(address, node).unwrap())
}

#[test]
fn lines_of_other_nodes_stay_in_the_node() {
    let mut machine = machine();
    machine.read(0, 0);
    assert_eq!(machine.read(2, 0), REMOTE);
    assert_eq!(machine.read(2, 64), FAR, "the other line of the block came with it");
    assert_eq!([0, 64].map(|address| machine.read(3, address)), [FAR, FAR], "for all processors of the node");
    assert_eq!(machine.read(1, 64), LOCAL, "the home has no use for it");
    // Lines 0, 2, 4 and 8 are in one set of the second cache; of blocks, 0, 2 and 4 are in one set.
    assert_eq!(machine.read(2, 128), REMOTE);
    assert_eq!(machine.read(2, 256), REMOTE);
    assert_eq!(machine.read(2, 0), FAR, "replaced in the second cache only");
    let counters = machine.counters();
    assert_eq!(counters.supplied[Supply::FarCache as usize], 4);
    assert_eq!(counters.far_misses, [3, 0]);
    assert_eq!(counters.stalled[Supply::FarCache as usize], 4 * FAR * 1000);
    assert_eq!(counters.l2_misses[Cause::Replaced as usize], 1);
    // Local: two of memory, four of the far memory cache, of nine misses.
    assert!((counters.locality() - 6.0 / 9.0).abs() < 1e-9);
}

#[test]
fn a_block_that_goes_takes_the_lines_of_the_processors_with_it() {
    let mut machine = machine();
    machine.read(0, 0);
    for address in [0, 256] {
        assert_eq!(machine.read(2, address), REMOTE);
    }
    assert_eq!(machine.read(3, 256 + 64), FAR);
    assert_eq!(machine.read(3, 0), FAR, "block 0 is the most recently used now");
    assert_eq!(machine.read(2, 512), REMOTE, "the third block of the set");
    assert_eq!(machine.counters().far_evicted, [1, 0]);
    assert_eq!((machine.0.cache_state(256, 2), machine.0.cache_state(256 + 64, 3)), (Invalid, Invalid));
    assert_eq!(machine.0.cache_state(0, 3), Shared);
    // Nobody wrote, so these are no misses of coherence, and the directory does not know.
    assert_eq!(machine.0.node_state(256, 1), Some(Shared));
    assert_eq!(machine.read(3, 256 + 64), REMOTE);
    assert_eq!((machine.causes(), machine.counters().invalidated), ([6, 1, 0, 0], 0));
    assert_eq!(machine.0.cache_state(0, 3), Invalid, "block 0 had to go for it");
}

#[test]
fn dirty_lines_go_into_it() {
    let mut machine = machine();
    machine.read(0, 0);
    assert_eq!(machine.write(2, 0), REMOTE);
    assert_eq!(machine.write(2, 64), FAR, "the node may write the whole block");
    assert_eq!(machine.write(3, 64), LOCAL_CACHE);
    // Memory of node 1 takes the place of line 0 in the second cache.
    machine.read(2, 8192);
    machine.read(2, 8192 + 128);
    assert_eq!(machine.counters().written_back, [0, 0, 1]);
    assert_eq!((machine.0.cache_state(0, 2), states(&machine, 0)), (Invalid, [Invalid, Modified, Invalid]));
    assert_eq!(machine.read(3, 0), FAR);
    // A third node gets one line from the far memory cache and the other one from a processor's cache behind it.
    assert_eq!(machine.read(4, 0), THREE_HOP_FAR);
    assert_eq!((machine.0.cache_state(64, 3), states(&machine, 64)), (Owned, [Invalid, Owned, Shared]));
    assert_eq!(machine.read(5, 64), FAR);
    assert_eq!(machine.counters().supplied[Supply::ThreeHop as usize], 1);
    // The home fetches both for its memory.
    assert_eq!(machine.read(0, 64), REMOTE_CACHE);
    assert_eq!(machine.read(1, 0), LOCAL);
    assert_eq!(states(&machine, 0), [Shared, Owned, Shared]);
}

#[test]
fn invalidations_reach_it() {
    let mut machine = machine();
    machine.read(0, 0);
    machine.read(2, 0);
    machine.read(3, 64);
    machine.read(4, 64);
    assert_eq!(machine.write(5, 0), INVALIDATION, "the far memory cache has it, the node may not write");
    assert_eq!(machine.counters().far_misses, [2, 1]);
    assert_eq!([2, 3].map(|processor| machine.0.cache_state(64, processor)), [Invalid, Invalid]);
    assert_eq!(machine.0.cache_state(64, 4), Shared, "within the node, a line is a line");
    assert_eq!(states(&machine, 64), [Invalid, Invalid, Modified]);
    // Processor 3's line was not written, but its block was: the far memory cache's false sharing.
    assert_eq!(machine.read(3, 64), THREE_HOP_FAR);
    assert_eq!(machine.read(2, 0), FAR, "it came along");
    assert_eq!(machine.causes()[Cause::FalseSharing as usize], 1);
    assert_eq!(machine.causes()[Cause::TrueSharing as usize], 1);
}

#[test]
fn a_dirty_block_goes_home_when_it_has_to_go() {
    let mut machine = machine();
    machine.read(0, 0);
    assert_eq!(machine.write(2, 64), REMOTE);
    assert_eq!([256, 512].map(|address| machine.read(3, address)), [REMOTE, REMOTE]);
    let counters = machine.counters();
    assert_eq!((counters.far_evicted, counters.written_back), ([0, 1], [0, 2, 0]));
    assert_eq!(machine.0.cache_state(64, 2), Invalid);
    assert_eq!(states(&machine, 64), [Modified, Invalid, Invalid]);
    assert_eq!(machine.read(1, 64), LOCAL, "memory has it");
    assert_eq!(machine.read(2, 64), REMOTE, "replaced: nobody else wrote");
    assert_eq!(machine.causes(), [5, 1, 0, 0]);
}

#[test]
fn an_owner_that_shares_its_block_asks_before_it_writes() {
    let mut machine = machine();
    machine.read(0, 0);
    machine.write(2, 0);
    assert_eq!(machine.read(4, 0), THREE_HOP);
    assert_eq!(states(&machine, 0), [Invalid, Owned, Shared]);
    assert_eq!(machine.write(2, 0), INVALIDATION);
    assert_eq!(machine.counters().remote_upgrades, 1);
    assert_eq!(states(&machine, 0), [Invalid, Modified, Invalid]);
    // The home takes both lines back when it writes one.
    assert_eq!(machine.write(0, 64), REMOTE_FAR);
    assert_eq!((states(&machine, 0), machine.0.cache_state(0, 2)), ([Modified, Invalid, Invalid], Invalid));
}

#[test]
fn without_a_size_there_is_none() {
    let mut machine = machine_of("size = 0, line = 128, ways = 2, latency = 1_000, occupancy = 0");
    machine.read(0, 0);
    assert_eq!([0, 64].map(|address| machine.read(2, address)), [REMOTE, REMOTE], "lines come alone");
    assert_eq!(machine.counters().far_misses, [0, 0]);
}

#[test]
fn it_is_used_by_one_at_a_time() {
    let mut machine = machine_of("size = 512, line = 64, ways = 2, latency = 1_000, occupancy = 7");
    machine.read(0, 0);
    machine.read(2, 0);
    machine.read(2, 64);
    machine.read(2, 128);
    machine.read(2, 256);
    let start = (0..6).map(|processor| machine.0.now(processor)).max().unwrap() + 1_000_000_000;
    for (processor, address) in [(2, 0), (3, 64)] {
        machine.0.port(processor).grant(start, start);
        machine.0.access(processor, address, 4, Kind::Read);
    }
    assert_eq!([2, 3].map(|processor| (machine.0.now(processor) - start) / 1000), [1 + FAR, 1 + FAR + 7]);
}

/// Any accesses by anybody: after each, all that [`gondwana_sim::Machine::check`] knows of is so, and each miss has one cause
/// and one supplier.
#[test]
fn caches_and_directory_agree_whatever_happens() {
    for (far_cache, other) in [
        ("size = 512, line = 128, ways = 2", "hops = 3"),
        ("size = 256, line = 64, ways = 1", "hops = 4"),
        ("size = 1024, line = 256, ways = 4", "hops = 4"),
        ("size = 2048, line = 1024, ways = 2", "hops = 3"),
    ] {
        for colouring in ["virtual", "random"] {
            let far_cache = format!("{far_cache}, latency = 1_000, occupancy = 10");
            let text = crate::MACHINE
                .replace("l1 = {", &format!("far_cache = {{ {far_cache} }}\n    l1 = {{"))
                .replace("reply = 40_000", &format!("reply = 40_000\n    {other}"))
                .replace("page_size = 4096", &format!("page_size = 1024, colouring = \"{colouring}\""));
            let mut machine = Simulated::of(&text);
            let mut number = 1_u64;
            let mut random = |below: u64| {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (number >> 33) % below
            };
            for _ in 0..4_000 {
                let processor = usize::try_from(random(6)).unwrap();
                let kind = if random(3) == 0 { Kind::Write } else { Kind::Read };
                machine.access(processor, random(6 * 1024 / 4) * 4, kind);
            }
            let counters = machine.counters();
            assert_eq!(counters.supplied.iter().sum::<u64>(), counters.misses());
            let busy = [
                counters.supplied[Supply::FarCache as usize],
                counters.far_evicted[0],
                counters.far_evicted[1],
            ];
            assert!(busy.iter().all(|count| *count > 20), "{far_cache}: {busy:?}");
        }
    }
}
