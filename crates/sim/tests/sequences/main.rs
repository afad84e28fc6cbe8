//! Sequences of accesses whose times and classes were computed by hand. The parts of the machine take times of different
//! magnitudes, so that a sum says what was passed.

mod far_cache;
mod replication;
mod watched;

use gondwana_coherence::directory::State::{Invalid, Modified, Owned, Shared};
use gondwana_sim::{Cause, Description, Kind, Machine, NANOSECOND, Supply};

/// Three nodes of two processors; 1 ns an access; lines of 64 bytes, in the first cache of 32; two sets of two ways in the
/// second one, four sets of one way in the first.
const MACHINE: &str = r#"
    name = "test"
    nodes = 3
    processors = 2
    processor = { mhz = 1000, cycles_per_access = 1 }
    l1 = { size = 128, line = 32, ways = 1 }
    l2 = { size = 256, line = 64, ways = 2, latency = 10 }
    bus = { latency = 200, occupancy = 0, cache_supply = 3_000 }
    memory = { latency = 5_000, banks = 1, occupancy = 0, page_size = 4096 }
    [controller]
    request = 10_000
    home = 20_000
    slave = 30_000
    reply = 40_000
    occupancy = 0
    [network]
    topology = "direct"
    latency = 100_000
    bandwidth = 1_000_000
    header = 1
"#;

/// L2, bus, memory.
const LOCAL: u64 = 10 + 200 + 5_000;
const LOCAL_CACHE: u64 = 10 + 200 + 3_000;
/// L2, bus, request, link, home, slave, bus, memory, link, reply, bus.
const REMOTE: u64 = 10 + 200 + 10_000 + 100_000 + 20_000 + 30_000 + 200 + 5_000 + 100_000 + 40_000 + 200;
const REMOTE_CACHE: u64 = REMOTE - 5_000 + 3_000;
/// L2, bus, request, link, home, link, slave, link, reply, bus.
const INVALIDATION: u64 = 10 + 200 + 10_000 + 100_000 + 20_000 + 100_000 + 30_000 + 100_000 + 40_000 + 200;
const THREE_HOP: u64 = REMOTE_CACHE + 100_000;

struct Simulated(Machine);

impl Simulated {
    fn new() -> Self {
        Self::of(MACHINE)
    }

    fn of(text: &str) -> Self {
        Self(Machine::new(&Description::parse(text).unwrap()))
    }

    /// The machine with a line of its file changed.
    fn with(old: &str, new: &str) -> Self {
        assert_eq!(MACHINE.matches(old).count(), 1);
        Self::of(&MACHINE.replace(old, new))
    }

    /// The time of an access beside its 1 ns, in ns, after all others are over.
    fn access(&mut self, processor: usize, address: u64, kind: Kind) -> u64 {
        let latest = (0..6).map(|other| self.0.now(other)).max().unwrap();
        // Completions that are under way arrive.
        let start = latest + 10_000_000 * NANOSECOND;
        self.0.port(processor).grant(start, start);
        self.0.access(processor, address, 4, kind);
        self.0.check().unwrap();
        (self.0.now(processor) - start) / NANOSECOND - 1
    }

    /// True if the fast path makes a read.
    fn is_fast(&mut self, processor: usize, address: u64) -> bool {
        let port = self.0.port(processor);
        port.grant(port.now(), port.now() + 1000 * NANOSECOND);
        port.read(address)
    }

    fn read(&mut self, processor: usize, address: u64) -> u64 {
        self.access(processor, address, Kind::Read)
    }

    fn write(&mut self, processor: usize, address: u64) -> u64 {
        self.access(processor, address, Kind::Write)
    }

    fn counters(&self) -> gondwana_sim::Counters {
        self.0.statistics(&Description::parse(MACHINE).unwrap(), 0).counters
    }

    fn causes(&self) -> [u64; 4] {
        self.counters().l2_misses
    }
}

#[test]
fn both_caches() {
    let mut machine = Simulated::new();
    assert_eq!(machine.read(0, 0), LOCAL, "cold");
    assert_eq!(machine.read(0, 4), 0, "the same line of the first cache");
    assert_eq!(machine.read(0, 32), 10, "the other half of the line");
    assert_eq!(machine.read(0, 128), LOCAL, "another line in the same set of both caches");
    assert_eq!(machine.read(0, 0), 10, "it is still in the second one");
    assert_eq!(machine.read(0, 256), LOCAL, "the third line of the set replaces the second");
    assert_eq!(machine.read(0, 0), 10);
    assert_eq!(machine.read(0, 128), LOCAL, "replaced");
    let counters = machine.counters();
    assert_eq!((counters.reads, counters.l1_misses, counters.misses()), (8, 7, 4));
    assert_eq!(machine.causes()[Cause::Cold as usize], 3);
    assert_eq!(machine.causes()[Cause::Replaced as usize], 1);
    assert_eq!(counters.written_back, [0, 0, 0], "clean lines are dropped");
}

/// A miss of the directory cache adds its time to the home's; an entry of the set makes room for another.
#[test]
fn entries_of_the_directory() {
    const MISS: u64 = 500_000;
    let part = format!("[directory_cache]\nentries = 2\nways = 1\nmiss = {MISS}\n");
    let mut machine = Simulated::of(&format!("{MACHINE}{part}"));
    assert_eq!(machine.read(0, 0), LOCAL, "no request of the home's own");
    assert_eq!(machine.read(2, 0), REMOTE + MISS);
    assert_eq!(machine.read(4, 0), REMOTE, "the entry is there");
    assert_eq!(machine.write(2, 0), INVALIDATION);
    assert_eq!(machine.read(2, 128), REMOTE + MISS, "the other entry of the set goes");
    assert_eq!(machine.read(4, 64), REMOTE + MISS, "another set");
    assert_eq!(machine.read(4, 0), THREE_HOP + MISS);
    let statistics = machine.0.statistics(&Description::parse(MACHINE).unwrap(), 0);
    let lookups = statistics.nodes[0].directory;
    assert_eq!((lookups.hits, lookups.misses), (2, 4));
    assert_eq!(statistics.nodes[1].directory, gondwana_sim::DirectoryLookups::default());
    let mut without = Simulated::of(&format!("{MACHINE}{}", part.replace("entries = 2", "entries = 0")));
    without.read(0, 0);
    assert_eq!(without.read(2, 0), REMOTE, "none is as good as one that has all");
}

/// WildFire's formula F3 takes a miss to another node for three transactions on buses, and a local one for one.
#[test]
fn a_remote_miss_is_on_three_buses() {
    let mut machine = Simulated::new();
    let buses = |machine: &Simulated| -> Vec<u64> {
        let statistics = machine.0.statistics(&Description::parse(MACHINE).unwrap(), 0);
        statistics.nodes.iter().map(|node| node.bus.uses).collect()
    };
    machine.read(0, 0);
    assert_eq!(buses(&machine), [1, 0, 0]);
    machine.read(2, 0);
    assert_eq!(buses(&machine), [2, 2, 0], "twice on the requester's: the answer is a transaction, too");
}

#[test]
fn within_a_node() {
    let mut machine = Simulated::new();
    assert_eq!(machine.write(0, 0), LOCAL);
    assert_eq!(machine.write(0, 0), 0);
    assert_eq!(machine.read(1, 0), LOCAL_CACHE);
    assert_eq!([0, 1].map(|processor| machine.0.cache_state(0, processor)), [Owned, Shared]);
    assert_eq!(machine.write(1, 0), 10 + 200, "an upgrade, by the bus alone");
    assert_eq!([0, 1].map(|processor| machine.0.cache_state(0, processor)), [Invalid, Modified]);
    assert_eq!(machine.read(0, 0), LOCAL_CACHE, "true sharing");
    assert_eq!(machine.write(1, 0), 10 + 200, "from owned");
    assert_eq!(machine.read(0, 8), LOCAL_CACHE, "false sharing");
    assert_eq!(machine.causes(), [2, 0, 1, 1]);
    let counters = machine.counters();
    assert_eq!((counters.upgrades, counters.remote_upgrades, counters.invalidated), (2, 0, 2));
}

#[test]
fn remote_memory_and_three_hops() {
    let mut machine = Simulated::new();
    machine.read(0, 0);
    assert_eq!(machine.read(2, 0), REMOTE, "clean at home, though a cache there has it");
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Owned, Shared, Invalid]);
    assert_eq!(machine.write(4, 0), INVALIDATION, "the sharer's answer comes after the data");
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Invalid, Modified]);
    assert_eq!(machine.read(2, 0), THREE_HOP);
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Shared, Owned]);
    // The home asks itself: no link to itself, but one to the owner and one back.
    assert_eq!(machine.read(0, 0), REMOTE_CACHE);
    assert_eq!(machine.read(1, 0), LOCAL, "the home's memory has it again");
    let counters = machine.counters();
    assert_eq!(counters.supplied[Supply::LocalMemory as usize], 2);
    assert_eq!(counters.supplied[Supply::RemoteMemory as usize], 2);
    assert_eq!(counters.supplied[Supply::RemoteCache as usize], 1);
    assert_eq!(counters.supplied[Supply::ThreeHop as usize], 1);
    assert_eq!(counters.stalled[Supply::ThreeHop as usize], THREE_HOP * NANOSECOND);
}

#[test]
fn dirty_at_home() {
    let mut machine = Simulated::new();
    machine.write(0, 0);
    assert_eq!(machine.read(2, 0), REMOTE_CACHE);
    assert_eq!(machine.0.cache_state(0, 0), Owned);
    let upgrade = machine.write(0, 0);
    // L2, bus, request, home, link, slave, link back, reply, bus: the sharer says that it has let go.
    assert_eq!(upgrade, 10 + 200 + 10_000 + 20_000 + 100_000 + 30_000 + 100_000 + 40_000 + 200);
    assert_eq!(machine.counters().remote_upgrades, 1);
}

#[test]
fn writebacks() {
    let mut machine = Simulated::new();
    for line in 0..3 {
        machine.read(0, line * 128);
    }
    machine.write(2, 0);
    machine.write(2, 128);
    assert_eq!(machine.counters().written_back, [0, 0, 0]);
    machine.write(2, 256);
    assert_eq!(machine.counters().written_back, [0, 1, 0], "line 0 had to go");
    assert_eq!([0, 1].map(|node| machine.0.node_state(0, node).unwrap()), [Modified, Invalid]);
    assert_eq!(machine.read(1, 0), LOCAL, "home's memory has it");
    // A node that writes an owned line back keeps it if another of its caches shares it.
    assert_eq!(machine.read(3, 128), LOCAL_CACHE);
    machine.read(2, 0);
    assert_eq!(machine.counters().written_back, [0, 2, 0], "line 2 had to go");
    assert_eq!([0, 1].map(|node| machine.0.node_state(128, node).unwrap()), [Owned, Shared]);
    assert_eq!(machine.read(3, 128), 0);
}

#[test]
fn pages_are_where_they_are_touched_first() {
    let mut machine = Simulated::new();
    assert_eq!(machine.read(5, 8192), LOCAL);
    assert_eq!(machine.read(0, 8192 + 64), REMOTE);
    let mut striped = Simulated::with("page_size = 4096", "page_size = 4096, placement = \"striped\"");
    assert_eq!([0, 4096, 8192].map(|address| striped.read(2, address)), [REMOTE, LOCAL, REMOTE]);
}

#[test]
fn a_blocked_line_makes_the_next_request_wait() {
    let mut machine = Simulated::new();
    machine.read(0, 0);
    let start = 1_000_000 * NANOSECOND * 100;
    for processor in [2, 4] {
        machine.0.port(processor).grant(start, start);
        machine.0.access(processor, 0, 4, Kind::Read);
    }
    let [first, second] = [2, 4].map(|processor| (machine.0.now(processor) - start) / NANOSECOND - 1);
    assert_eq!(first, REMOTE);
    // Both requests arrive at the same time. The first is complete at the home when its requester, whose last step is the
    // bus, has said so over a link; then the home takes the second up.
    let complete = REMOTE - 200 + 100_000;
    let arrival = 10 + 200 + 10_000 + 100_000;
    assert_eq!(second, REMOTE + complete - arrival);
}

#[test]
fn a_bus_and_a_bank_are_used_by_one_at_a_time() {
    let mut machine = Simulated::with("occupancy = 0, cache_supply", "occupancy = 7, cache_supply").0;
    for processor in [0, 1] {
        machine.access(processor, processor as u64 * 64, 4, Kind::Read);
    }
    assert_eq!([0, 1].map(|processor| machine.now(processor) / NANOSECOND), [1 + LOCAL, 1 + LOCAL + 7]);
}

/// Pages of 1 KiB: first caches have lines of two and more of them.
fn with_tlb(tlb: &str) -> Simulated {
    Simulated::with("l1 = {", &format!("tlb = {{ {tlb}, page_size = 1024, miss = 1_000_000 }}\n    l1 = {{"))
}

#[test]
fn translations() {
    const WALK: u64 = 1_000_000;
    let mut machine = with_tlb("entries = 2, ways = 2");
    assert_eq!(machine.read(0, 0), WALK + LOCAL);
    assert_eq!(machine.read(0, 512 + 32), LOCAL, "the page is there");
    assert_eq!(machine.read(0, 1024 + 64), WALK + LOCAL);
    // The first cache has the lines at 0, 544 and 1088, in its sets 0, 1 and 2.
    assert_eq!([0, 512 + 32, 1024 + 64].map(|address| machine.read(0, address)), [0, 0, 0]);
    assert_eq!(machine.read(0, 2048 + 96), WALK + LOCAL, "the first page goes, though it was used");
    assert_eq!(
        [0, 512 + 32, 1024 + 64, 2048 + 96].map(|address| machine.is_fast(0, address)),
        [false, false, true, true],
        "in the first cache, but not in the translation buffer"
    );
    assert_eq!(machine.read(0, 0), WALK, "in the first cache, without a translation; page 1 goes");
    assert_eq!(machine.read(0, 512 + 32), 0, "in the same page");
    assert_eq!(machine.read(0, 2048 + 96), 0, "page 2 is still there");
    assert_eq!(machine.read(0, 1024 + 64), WALK);
    let counters = machine.counters();
    assert_eq!((counters.tlb_misses, counters.tlb_stalled), ([3, 2], 5 * WALK * NANOSECOND));
    assert_eq!((counters.misses(), counters.l1_misses), (4, 4));
    // Processors have translation buffers of their own.
    assert_eq!(machine.write(1, 0), WALK + LOCAL);
}

#[test]
fn translations_of_an_access_that_crosses_pages() {
    let mut machine = with_tlb("entries = 4, ways = 2");
    machine.0.access(0, 1022, 4, Kind::Write);
    let counters = machine.counters();
    assert_eq!((counters.tlb_misses, counters.writes), ([2, 0], 2));
    assert!(machine.0.access_private(0, 1022, 4, Kind::Write));
    // Pages 0, 2 and 4 are in one set: 0 goes.
    machine.read(0, 2048 + 64);
    machine.read(0, 4096 + 32);
    assert_eq!(machine.counters().tlb_misses, [4, 0]);
    let before = machine.0.now(0);
    assert!(machine.0.access_private(0, 1022, 4, Kind::Read), "the lines are there");
    assert_eq!(machine.0.now(0) - before, (1_000_000 + 2) * NANOSECOND);
    machine.0.check().unwrap();
}

#[test]
fn a_translation_buffer_without_entries_is_none() {
    let mut machine = with_tlb("entries = 0, ways = 1");
    assert_eq!([0, 8192].map(|address| machine.read(0, address)), [LOCAL, LOCAL]);
    assert_eq!(machine.counters().tlb_misses, [0, 0]);
}

/// A second cache of two ways of four pages; reads the first line of pages in this order and returns the time of reading the
/// first one again. 10: it is still in the second cache.
fn coloured(colouring: &str, pages: &[u64]) -> u64 {
    let text = MACHINE
        .replace("l2 = { size = 256", "l2 = { size = 8192")
        .replace("page_size = 4096", &format!("page_size = 1024, colouring = \"{colouring}\""));
    let mut machine = Simulated::of(&text);
    for page in pages {
        assert_eq!(machine.read(0, page * 1024), LOCAL);
    }
    machine.read(0, pages[0] * 1024)
}

#[test]
fn colours() {
    // By their numbers, all three have colour 0; by the order of their first touch, 0, 1 and 2.
    assert_eq!(coloured("virtual", &[0, 4, 8]), LOCAL);
    assert_eq!(coloured("cyclic", &[0, 4, 8]), 10);
    // By their numbers, nobody else has colour 0; by order, 5 and 10 have.
    let pages = [0, 1, 2, 3, 5, 6, 7, 9, 10];
    assert_eq!(coloured("virtual", &pages), 10);
    assert_eq!(coloured("cyclic", &pages), LOCAL);
    assert_eq!(coloured("cyclic", &pages[..8]), 10, "two ways are enough for 0 and 5");
    // Of 39 others, more than two get the colour of page 0.
    assert_eq!(coloured("random", &(0..40).collect::<Vec<_>>()), LOCAL);
}

#[test]
fn four_hops() {
    let mut machine = Simulated::with("reply = 40_000", "reply = 40_000\n    hops = 4");
    machine.read(0, 0);
    assert_eq!(machine.read(2, 0), REMOTE, "the home's memory supplies: two hops");
    // The answers go to the home, which works on them, and one more link.
    let detour = 20_000 + 100_000;
    assert_eq!(machine.write(4, 0), INVALIDATION + detour);
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Invalid, Modified]);
    assert_eq!(machine.read(2, 0), THREE_HOP + detour);
    assert_eq!([0, 1, 2].map(|node| machine.0.node_state(0, node).unwrap()), [Invalid, Shared, Owned]);
    assert_eq!(machine.read(0, 0), REMOTE_CACHE + 20_000, "the home asks for itself");
    let counters = machine.counters();
    assert_eq!(counters.supplied[Supply::ThreeHop as usize], 1);
    assert_eq!(counters.stalled[Supply::ThreeHop as usize], (THREE_HOP + detour) * NANOSECOND);
    machine.write(0, 0);
    assert_eq!(machine.read(2, 0), REMOTE_CACHE, "dirty in a cache of the home's node: two hops");
    // A writeback is the same.
    machine.write(2, 0);
    machine.write(2, 128);
    machine.write(2, 256);
    assert_eq!(machine.counters().written_back, [0, 1, 0]);
    assert_eq!(machine.0.node_state(0, 0), Some(Modified));
}

/// What each node sends, what is local, and for how long processors wait.
#[test]
fn messages_links_and_locality() {
    let mut machine = Simulated::new();
    machine.read(0, 0);
    machine.read(0, 4);
    machine.read(0, 32);
    // Requester: request and end; home: the line.
    machine.read(2, 0);
    // Requester: the same; home: one that invalidates, and the line; sharer: its answer.
    machine.write(4, 0);
    let description = Description::parse(MACHINE).unwrap();
    let statistics = machine.0.statistics(&description, 0);
    let sent = |node: usize| (statistics.nodes[node].messages, statistics.nodes[node].requests);
    assert_eq!([sent(0), sent(1), sent(2)], [(3, 1), (3, 1), (2, 1)]);
    // Headers of 1 byte, and a line in the home's answers.
    assert_eq!([0, 1, 2].map(|node| statistics.nodes[node].message_bytes), [3 + 2 * 64, 3, 2]);
    let links: Vec<_> =
        statistics.links.iter().map(|link| (link.from.unwrap(), link.to.unwrap(), link.used.uses)).collect();
    assert_eq!(links, [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 1), (2, 0, 2)]);
    assert_eq!(
        statistics.busiest_link().busy,
        66,
        "line and invalidation to node 1: 66 bytes at 1 TB/s, in ps"
    );
    // One of three misses is local, as many as at random on three nodes.
    assert!(statistics.created_locality().unwrap().abs() < 1e-9);
    let counters = &statistics.counters;
    assert_eq!((counters.l1_hits(), counters.l2_hits()), (1, 1));
    assert_eq!(counters.waited(), (LOCAL + REMOTE + INVALIDATION) * NANOSECOND);
}

#[test]
fn a_machine_of_one_node_has_no_created_locality() {
    let mut machine = Simulated::with("nodes = 3", "nodes = 1").0;
    machine.access(0, 0, 4, Kind::Read);
    let statistics = machine.statistics(&Description::parse(MACHINE).unwrap(), 0);
    assert_eq!((statistics.created_locality(), statistics.links.len()), (None, 0));
}
