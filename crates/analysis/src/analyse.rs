//! The analysis of a recording, from its rows to tables, pictures and advice.

use crate::areas::{AreaCounters, Map, Owner, area_counters};
use crate::constructs;
use crate::named_parts::named_parts;
use crate::naming::{Codes, Naming};
use crate::object_table::object_table;
use crate::picture_cells::picture_cells;
use crate::range_set::RangeSet;
use crate::recording_notes::recording_notes;
use crate::row_sums::{self, Amount, RowKey, Shape};
use crate::sharing::{self, Key, PageHistory};
use crate::written_bytes::Writes;
use crate::{
    Analysis, Area, CodePlace, FalselySharedPage, Field, Names, NodeTotal, ThreadInfo, Totals, UsedBytes,
    atomics, filters, flows, locks, page_uses, timeline,
};
use gondwana_recording::Recording;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// The most falsely shared pages that are listed for an area.
const PAGES: usize = 32;
/// The most places in the program that are listed for an area.
const PLACES: usize = 64;
/// The most named parts that are listed for an area.
const FIELDS: usize = 32;
/// The most addresses of an area that are named for the list of parts: the hottest.
const ADDRESSES: usize = 4096;
/// The most ranges of addresses of an area.
const RANGES: usize = 4096;

/// Analyses a recording: data areas, their patterns of sharing, flows, time line, locks, atomic variables and filters.
///
/// Every transaction counts for one data area. If its unit of memory holds several areas, those whose bytes the node
/// writes come first, where that is known; otherwise each area gets a share in proportion to its bytes in the unit, and
/// the largest area gets a single transaction. Memory that the program has not allocated counts only in units that hold
/// nothing else.
///
/// # Examples
/// ```
/// use gondwana_analysis::{NoNames, analyse};
/// use gondwana_recording::{Recording, RunRecord};
///
/// let run = RunRecord { nodes: 2, page_bytes: 4096, ..RunRecord::default() };
/// let analysis = analyse(&Recording { run, ..Recording::default() }, &NoNames);
/// assert_eq!((analysis.nodes.len(), analysis.areas.len()), (2, 0));
/// ```
#[must_use]
pub fn analyse(recording: &Recording, names: &dyn Names) -> Analysis {
    let shape = Shape::of(recording);
    let rows = row_sums::of_data(recording, shape.nodes);
    let writes = Writes::of(recording, shape.nodes);
    let locks = locks::locks(recording, shape.nodes);
    let whole = |range: Range<u64>| {
        let mask = shape.page_bytes - 1;
        range.start & !mask..range.end.saturating_add(mask) & !mask
    };
    let mut filters = filters::filters(recording, shape.nodes);
    let hot_units =
        || filters.iter().filter(|filter| filter.unit <= shape.page_bytes).flat_map(|filter| &filter.hottest);
    let of_rows = rows.iter().map(|(like, _)| like.range());
    let of_locks = locks.iter().map(|lock| lock.address..lock.address.saturating_add(1));
    let of_filters = hot_units().map(|unit| unit.address..unit.address.saturating_add(1));
    let touched: RangeSet =
        of_rows.chain(of_locks).chain(of_filters).map(whole).chain(writes.pages()).collect();
    let map = Map::new(recording, names, &touched);
    let pages = sharing::pages(&rows, &shape, &map, &writes);
    let (area_counters, owners) = area_counters(&rows, &shape, &map, &writes, &pages);

    let page_bytes = shape.page_bytes;
    let mut codes = Codes::new(names);
    let naming = Naming::new(recording, names, &map, &mut codes);
    let lines = recording.run.exchanges_lines();
    let mut describe =
        Describe { shape, lines, map: &map, naming: &naming, pages: &pages, codes, ranges: ranges(&map) };
    let mut areas: Vec<(usize, Area)> =
        area_counters.into_iter().map(|(owner, counters)| (owner, describe.area(owner, counters))).collect();
    areas.sort_by(|(_, a), (_, b)| {
        let heat = |area: &Area| Reverse((area.totals.requests(), area.totals.bytes, area.totals.ahead));
        (heat(a), &a.name, a.ranges.first().map(|range| range.start)).cmp(&(
            heat(b),
            &b.name,
            b.ranges.first().map(|range| range.start),
        ))
    });
    let places: HashMap<usize, u32> =
        areas.iter().zip(0..).map(|((owner, _), place)| (*owner, place)).collect();
    let of_rows: Vec<u32> = owners.iter().map(|owner| places.get(owner).copied().unwrap_or(0)).collect();
    let threads = threads(recording, &mut describe.codes);
    let nodes = nodes(recording, &rows, &shape);
    let atomics = atomics::atomics(&rows, &owners, shape.nodes, &map, &naming, &mut describe.codes);
    let constructs = constructs::constructs(recording, shape.nodes, &mut describe.codes);
    for unit in
        filters.iter_mut().filter(|filter| filter.unit <= page_bytes).flat_map(|filter| &mut filter.hottest)
    {
        unit.name = naming.at(map.at(unit.address), unit.address);
    }
    Analysis {
        filters,
        run: recording.run.clone(),
        seconds: timeline::end(recording) as f64 / 1e9,
        totals: nodes.iter().fold(Totals::default(), |mut sum, node| {
            sum.add(&node.totals);
            sum
        }),
        nodes,
        threads,
        areas: areas.into_iter().map(|(_, area)| area).collect(),
        flows: flows::flows(&rows, shape.nodes),
        timeline: timeline::timeline(recording, &shape),
        locks: locks
            .into_iter()
            .map(|lock| crate::LockHandOffs { name: naming.at(map.at(lock.address), lock.address), ..lock })
            .collect(),
        atomics,
        constructs,
        cells: picture_cells(&rows, &of_rows),
        homes: page_uses::home_uses(recording, &shape),
        pages: page_uses::page_uses(&rows, &of_rows, shape.page_bytes),
        objects: object_table(&map, &naming, names, &places),
        parts: named_parts(&rows, &owners, &of_rows, page_bytes, &naming),
        notes: recording_notes(recording, &shape, &describe.codes),
    }
}

/// The totals of each node.
fn nodes(recording: &Recording, rows: &[(RowKey, Amount)], shape: &Shape) -> Vec<NodeTotal> {
    let mut nodes = vec![NodeTotal::default(); shape.nodes];
    for (like, amount) in rows {
        nodes[usize::from(like.node)].totals.count(like.kind, *amount);
    }
    for (node, started) in &recording.started {
        if let Some(total) = nodes.get_mut(usize::from(*node)) {
            total.host.clone_from(&started.host);
        }
    }
    for (node, end) in &recording.ended {
        if let Some(total) = nodes.get_mut(usize::from(*node)) {
            (total.messages, total.sent) = (end.messages, end.bytes);
        }
    }
    nodes
}

/// The threads, by number.
fn threads(recording: &Recording, codes: &mut Codes<'_>) -> Vec<ThreadInfo> {
    let mut threads: Vec<ThreadInfo> = recording
        .threads
        .iter()
        .map(|(node, thread)| ThreadInfo {
            number: thread.number,
            node: *node,
            routine: if thread.routine == 0 { String::new() } else { codes.function(thread.routine) },
        })
        .collect();
    threads.sort_by_key(|thread| (thread.number, thread.node));
    threads.dedup();
    threads
}

/// The addresses of the blocks of each group.
fn ranges(map: &Map) -> HashMap<usize, Vec<Range<u64>>> {
    let mut ranges: HashMap<usize, Vec<Range<u64>>> = HashMap::new();
    for (range, object) in map.blocks.layer.iter() {
        ranges.entry(map.blocks.objects[object].1).or_default().push(range);
    }
    for found in ranges.values_mut() {
        let mut hole = 64;
        loop {
            found.dedup_by(|next, range| {
                let near = next.start - range.end <= hole;
                if near {
                    range.end = next.end;
                }
                near
            });
            if found.len() <= RANGES {
                break;
            }
            hole *= 4;
        }
    }
    ranges
}

/// Turns counters into areas.
struct Describe<'a> {
    shape: Shape,
    /// Nodes exchange lines.
    lines: bool,
    map: &'a Map,
    naming: &'a Naming<'a>,
    pages: &'a BTreeMap<Key, PageHistory>,
    codes: Codes<'a>,
    /// The addresses of the blocks of each group.
    ranges: HashMap<usize, Vec<Range<u64>>>,
}

impl Describe<'_> {
    fn area(&mut self, owner: usize, mut counters: AreaCounters) -> Area {
        let (objects, bytes, ranges) = self.extent(owner);
        let nodes = (0..self.shape.nodes).map(|node| {
            let mut node =
                u16::try_from(node).ok().and_then(|node| counters.nodes.remove(&node)).unwrap_or_default();
            node.from.resize(self.shape.nodes, 0);
            node
        });
        Area {
            nodes: nodes.collect(),
            name: self.naming.area(owner).to_owned(),
            origin: self.naming.origin(owner, &mut self.codes),
            ranges,
            objects,
            bytes,
            totals: counters.totals,
            pattern: counters.pattern(),
            places: self.places(&counters),
            fields: self.fields(owner, &counters),
            falsely_shared: counters
                .falsely_shared
                .iter()
                .take(PAGES)
                .map(|(key, misses)| self.shared(*key, *misses))
                .collect(),
        }
    }

    /// The number of blocks, the sum of their bytes, and their ranges.
    fn extent(&self, owner: usize) -> (u64, u64, Vec<Range<u64>>) {
        let one = |range: &Range<u64>| (1, crate::range_set::length(range), vec![range.clone()]);
        match &self.map.owners[owner] {
            Owner::Variable(variable) => {
                one(&(variable.start..variable.start.saturating_add(variable.bytes)))
            }
            Owner::Group(group) => {
                let blocks = &self.map.blocks.groups[*group];
                (blocks.objects, blocks.bytes, self.ranges.get(group).cloned().unwrap_or_default())
            }
            Owner::Mapping(range) | Owner::Heap(range) => one(range),
            Owner::Named(_) | Owner::Stack(_) | Owner::Unnamed(_) | Owner::Other => {
                let ranges = self.map.ranges(owner);
                (1, ranges.iter().map(crate::range_set::length).sum(), ranges)
            }
        }
    }

    fn places(&mut self, counters: &AreaCounters) -> Vec<CodePlace> {
        let mut places: HashMap<(String, String), (u64, u64)> = HashMap::new();
        for (&code, &(reads, writes)) in &counters.codes {
            let sum = places.entry(self.codes.place(code)).or_default();
            *sum = (sum.0.saturating_add(reads), sum.1.saturating_add(writes));
        }
        CodePlace::hottest(places, PLACES)
    }

    fn fields(&self, owner: usize, counters: &AreaCounters) -> Vec<Field> {
        let mut touched: Vec<_> =
            counters.touched.iter().map(|(&at, &(reads, writes))| (at, reads, writes)).collect();
        touched.sort_by_key(|&(at, reads, writes)| (Reverse(reads.saturating_add(writes)), at));
        touched.truncate(ADDRESSES);
        let mut fields: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (at, reads, writes) in touched {
            let name = self.naming.field(owner, at);
            if !name.is_empty() {
                let sum = fields.entry(name).or_default();
                *sum = (sum.0.saturating_add(reads), sum.1.saturating_add(writes));
            }
        }
        let fields = fields.into_iter().map(|(name, (reads, writes))| Field { name, reads, writes });
        let mut fields: Vec<Field> = fields.collect();
        fields.sort_by_key(|field| Reverse(field.reads.saturating_add(field.writes)));
        fields.truncate(FIELDS);
        fields
    }

    fn shared(&self, key: Key, false_misses: u64) -> FalselySharedPage {
        let page = &self.pages[&key];
        let mut writers = vec![];
        for side in sharing::node_bytes(page) {
            let mut at = side.bytes.start;
            let mut piece = |owner: usize, bytes: Range<u64>| {
                let name = self.naming.range(owner, &bytes);
                writers.push(UsedBytes { node: side.node, writes: side.writes, bytes, name });
            };
            for (owner, bytes) in self.map.pieces(&side.bytes) {
                at = bytes.end;
                piece(owner, bytes);
            }
            if at == side.bytes.start {
                piece(self.map.owners.len() - 1, side.bytes.clone());
            }
        }
        // Of lines, those that were not lost falsely would have been fetched all the same.
        let fetches = match self.lines {
            true => false_misses,
            false => page.uses.values().fold(0_u64, |sum, used| sum.saturating_add(used.arrivals())),
        };
        FalselySharedPage { page: key.0, fetches, writers }
    }
}
