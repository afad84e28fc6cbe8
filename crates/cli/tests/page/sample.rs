//! A synthetic recording of a program on four nodes with two threads each: a grid in bands, falsely shared counters,
//! many small blocks, and a hostile name.

use gondwana_analysis::{
    Analysis, Area, AreaNode, Cell, CodePlace, FalselySharedPage, Field, Flow, Layout, Layouts, LockHandOffs,
    Member, NodeTotal, ObjectSeries, ObjectTable, Origin, Pattern, ThreadInfo, TimelineSlot, Totals,
    UsedBytes,
};
use std::ops::Range;

/// How many nodes it had.
pub(crate) const NODES: u16 = 4;
const THREADS: u32 = 8;
const PAGE: u64 = gondwana_page::PAGE_SIZE as u64;
/// Where its heap begins.
pub(crate) const HEAP: u64 = 0x1000_0000_0000;
/// Where its variables begin.
pub(crate) const DATA: u64 = 0x0800_0000_0000;
/// The places of areas in the table.
pub(crate) const GRID: u32 = 0;
/// See [`GRID`].
pub(crate) const COUNTERS: u32 = 1;
/// See [`GRID`].
pub(crate) const BODIES: u32 = 2;
/// See [`GRID`].
pub(crate) const HOSTILE: u32 = 3;
/// The name of the last area.
pub(crate) const HOSTILE_NAME: &str =
    "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>\u{2028}'\"&amp;";

/// The recording, understood.
pub(crate) fn analysis() -> Analysis {
    let mut cells = [counters(), hostile(), grid(1024), bodies(600)].concat();
    cells.sort_by_key(|cell| cell.address);
    of_cells(cells)
}

/// As many cells as a page can have.
pub(crate) fn full() -> Analysis {
    let threads = 4;
    let cells = (0..200_000_u32).map(|index| {
        let (unit, thread) = (index / threads, index % threads * 2);
        cell(HEAP + u64::from(unit) * 32, 5, GRID, thread, unit / 500 % 7 + 1, index % 3)
    });
    of_cells(cells.collect())
}

/// The node on which a thread runs.
fn node_of(thread: u32) -> u16 {
    u16::try_from(thread % u32::from(NODES)).unwrap()
}

fn cell(address: u64, unit: u8, area: u32, thread: u32, reads: u32, writes: u32) -> Cell {
    let bytes = u64::from(reads + writes) * PAGE;
    Cell { address, unit, area, node: node_of(thread), thread: thread + 1, reads, writes, bytes }
}

/// Bands of rows: a thread fetches those of its neighbours at the edges most.
fn grid(pages: u32) -> Vec<Cell> {
    let band = pages / THREADS;
    let at = |page: u32| {
        let (owner, row) = (page / band, page % band);
        let edge = row.min(band - 1 - row);
        let neighbour = if row < band / 2 { owner.wrapping_sub(1) } else { owner + 1 }.min(THREADS - 1);
        let address = HEAP + u64::from(page) * PAGE;
        let own = cell(address, 12, GRID, owner, 6 + page % 5, 8);
        let other = cell(address, 12, GRID, neighbour, 60 / (edge + 1), 0);
        if neighbour == owner { vec![own] } else { vec![own, other] }
    };
    (0..pages).flat_map(at).filter(|cell| cell.reads + cell.writes > 0).collect()
}

/// Each thread writes a counter of 32 bytes of its own.
fn counters() -> Vec<Cell> {
    (0..THREADS)
        .map(|thread| cell(DATA + u64::from(thread) * 32, 5, COUNTERS, thread, 90, 1500 + thread * 60))
        .collect()
}

fn bodies(count: u32) -> Vec<Cell> {
    let at = |body: u32| {
        let thread = body % THREADS;
        let address = HEAP + (1 << 30) + u64::from(body) * 160;
        [cell(address, 5, BODIES, thread, 3, 9), cell(address + 64, 5, BODIES, (thread + 3) % THREADS, 12, 0)]
    };
    (0..count).flat_map(at).collect()
}

fn hostile() -> Vec<Cell> {
    vec![cell(DATA + PAGE, 12, HOSTILE, 1, 40, 7)]
}

fn of_cells(cells: Vec<Cell>) -> Analysis {
    let mut areas = areas();
    for (index, area) in areas.iter_mut().enumerate() {
        for cell in cells.iter().filter(|cell| cell.area as usize == index) {
            add(&mut area.totals, cell);
            let node = &mut area.nodes[usize::from(cell.node)];
            add(&mut node.totals, cell);
            node.written += u64::from(cell.writes) * 24;
            if !node.threads.contains(&(cell.thread - 1)) {
                node.threads.push(cell.thread - 1);
            }
        }
    }
    let mut analysis = Analysis { seconds: 4.27, areas, cells, ..Analysis::default() };
    for (node, host) in ["ash", "birch", "cedar", "douglas-fir"].into_iter().enumerate() {
        let mut totals = Totals::default();
        for cell in analysis.cells.iter().filter(|cell| usize::from(cell.node) == node) {
            add(&mut totals, cell);
            add(&mut analysis.totals, cell);
        }
        analysis.nodes.push(NodeTotal {
            host: host.to_owned(),
            messages: totals.requests() * 2,
            sent: totals.bytes,
            totals,
        });
    }
    run(&mut analysis);
    analysis.threads = (0..THREADS)
        .map(|number| ThreadInfo {
            number,
            node: node_of(number),
            routine: if number == 0 { "main".to_owned() } else { "relax".to_owned() },
        })
        .collect();
    analysis.flows = (0..4u64).map(|from| (0..4u64).map(|to| flow(from, to)).collect()).collect();
    analysis.timeline = (0..60).map(slot).collect();
    analysis.objects = bodies_by_name(HEAP + (1 << 30));
    analysis.locks = vec![LockHandOffs {
        name: "sums.lock".to_owned(),
        address: DATA + 0x140,
        hand_offs: vec![120, 98, 101, 77],
    }];
    analysis.notes = vec!["Node 2 did not end in order: what it did last may be missing.".to_owned()];
    analysis
}

/// A block of 100 bodies, and 500 blocks of one, behind each other.
fn bodies_by_name(start: u64) -> ObjectTable {
    let row = |start, step, count, bytes, name| ObjectSeries {
        start,
        step,
        count,
        bytes,
        area: BODIES,
        name,
        of: 2,
    };
    let member =
        |text: &str, start, bytes| Member { text: text.to_owned(), start, bytes, of: Layouts::PLAIN };
    let members = vec![member(".mass", 0, 8), member(".speed", 8, 48), member(".position", 64, 96)];
    ObjectTable {
        series: vec![row(start, 0, 1, 16_000, 0), row(start + 16_000, 160, 500, 160, 1)],
        names: vec!["bodies".to_owned(), "extra".to_owned()],
        layouts: vec![
            Layout::Plain,
            Layout::Struct(members),
            Layout::Array { element: 1, bytes: 160, counts: vec![0] },
        ],
    }
}

fn run(analysis: &mut Analysis) {
    let run = &mut analysis.run;
    run.executable = "/home/user/relax".to_owned();
    run.command = ["./relax", "--size", "2048", "--sweeps", "200"].map(str::to_owned).to_vec();
    run.nodes = NODES;
    run.page_bytes = 1 << gondwana_page::PAGE_BITS;
    run.consistency = "rc".to_owned();
    run.fabric = "shm".to_owned();
}

fn add(totals: &mut Totals, cell: &Cell) {
    totals.reads += u64::from(cell.reads);
    totals.writes += u64::from(cell.writes);
    totals.diffs += u64::from(cell.writes / 2);
    totals.bytes += cell.bytes;
}

fn area(name: &str, origin: Origin, ranges: Vec<Range<u64>>, pattern: Pattern) -> Area {
    let bytes = ranges.iter().map(|range| range.end - range.start).sum();
    let nodes = (0..NODES).map(|node| AreaNode {
        from: (0..4).map(|from| u64::from(from != node) * 40).collect(),
        ..AreaNode::default()
    });
    Area {
        name: name.to_owned(),
        origin,
        objects: ranges.len() as u64,
        ranges,
        bytes,
        totals: Totals::default(),
        nodes: nodes.collect(),
        pattern,
        places: vec![],
        fields: vec![],
        falsely_shared: vec![],
    }
}

fn areas() -> Vec<Area> {
    let variable = |name: &str| Origin::Variable { name: name.to_owned(), library: String::new() };
    let allocation = |calls: [&str; 2]| Origin::Allocation {
        site: calls[0].to_owned(),
        caller: calls[1].to_owned(),
        library: String::new(),
        stack: calls.map(str::to_owned).to_vec(),
        threads: vec![0],
    };
    let place = |text: &str, function: &str, reads, writes| CodePlace {
        text: text.to_owned(),
        function: function.to_owned(),
        reads,
        writes,
    };
    let one = |start: u64, bytes: u64| -> Vec<Range<u64>> { std::iter::once(start..start + bytes).collect() };
    let mut grid = area(
        "grid = malloc",
        allocation(["allocate+0x2c (relax.c:41)", "main+0x90 (relax.c:120)"]),
        one(HEAP, 1024 * PAGE),
        Pattern::ProducerConsumer,
    );
    grid.places = vec![place("relax.c:77", "relax", 9120, 0), place("relax.c:81", "relax", 0, 8192)];
    let mut counters = area("counters", variable("counters"), one(DATA, 256), Pattern::FalselyShared);
    counters.places = vec![place("relax.c:90", "relax", 720, 13_680)];
    counters.fields = vec![Field { name: "[].updates".to_owned(), reads: 720, writes: 13_680 }];
    let writers = (0..THREADS).zip((DATA..).step_by(32)).map(|(thread, start)| UsedBytes {
        node: node_of(thread),
        writes: true,
        bytes: start..start + 8,
        name: format!("counters[{thread}].updates"),
    });
    counters.falsely_shared =
        vec![FalselySharedPage { page: DATA, fetches: 720, writers: writers.collect() }];
    let blocks =
        (0..600).map(|body| HEAP + (1 << 30) + body * 160..HEAP + (1 << 30) + body * 160 + 152).collect();
    let mut bodies = area(
        "bodies = malloc",
        allocation(["make_body+0x18 (bodies.c:12)", "main+0xb4 (relax.c:131)"]),
        blocks,
        Pattern::Migratory,
    );
    bodies.places = vec![place("bodies.c:44", "step", 4000, 5400)];
    let hostile = area(HOSTILE_NAME, variable(HOSTILE_NAME), one(DATA + PAGE, PAGE), Pattern::Private);
    vec![grid, counters, bodies, hostile]
}

fn flow(from: u64, to: u64) -> Flow {
    match (from != to).then_some((from * 7 + to * 3) % 5 + 1) {
        Some(weight) => Flow {
            pages: weight * 810,
            diffs: weight * 120,
            notices: weight * 300,
            bytes: weight * 810 * PAGE,
        },
        None => Flow::default(),
    }
}

fn slot(index: u32) -> TimelineSlot {
    let length = 4.27 / 60.0;
    let nodes = (0..u32::from(NODES)).map(|node| Totals {
        reads: u64::from(40 + (index * (node + 3)) % 31 + if index < 6 { 150 } else { 0 }),
        writes: u64::from(25 + (index + node * 9) % 17),
        diffs: if index % 8 == 7 { 60 } else { 12 },
        ..Totals::default()
    });
    TimelineSlot {
        begin: f64::from(index) * length,
        end: f64::from(index + 1) * length,
        nodes: nodes.collect(),
    }
}
