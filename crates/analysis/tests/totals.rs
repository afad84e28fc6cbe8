//! Whatever a recording says, nothing is lost, nothing counts twice, and nothing breaks.

mod common;

use common::{DATA, HEAP, Known, Source};
use gondwana_analysis::{AreaNode, NoNames, Totals, analyse};
use gondwana_monitor::{Direction, Kind};
use gondwana_recording::{
    BlockRecord, End, ImageRecord, Interval, Recording, Reference, RunRecord, SegmentKind, SegmentRecord,
    SiteRecord, Started, Stretch, Stretches, ThreadRecord, TransactionRow, WrittenRecord,
};
use proptest::prelude::*;

/// Mostly where something is, sometimes anywhere.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (DATA..DATA + 0x4000).boxed(),
        4 => (HEAP..HEAP + 0x8000).boxed(),
        1 => any::<u64>().boxed(),
        1 => (u64::MAX - 0x2000..=u64::MAX).boxed(),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

prop_compose! {
    fn row()(
        address in address(),
        unit in prop_oneof![9 => (0_u8..14).boxed(), 1 => any::<u8>().boxed()],
        kind in kind(),
        inward: bool,
        peer in prop_oneof![9 => (0_u16..4).boxed(), 1 => any::<u16>().boxed()],
        thread in 0_u32..5,
        code in prop_oneof![Just(0), 0x40_1000_u64..0x40_1010, any::<u64>()],
        count in prop_oneof![0_u32..100, any::<u32>()],
        bytes in 0_u64..1 << 40,
    ) -> TransactionRow {
        let direction = if inward { Direction::In } else { Direction::Out };
        TransactionRow { address, unit, kind, direction, peer, thread, code, count, bytes }
    }
}

fn node() -> impl Strategy<Value = u16> {
    0_u16..3
}

fn many<T: std::fmt::Debug>(
    strategy: impl Strategy<Value = T>,
    most: usize,
) -> impl Strategy<Value = Vec<(u16, T)>> {
    prop::collection::vec((node(), strategy), 0..most)
}

prop_compose! {
    fn interval()(begin: u64, end: u64, rows in prop::collection::vec(row(), 0..20)) -> Interval {
        Interval { begin, end, rows }
    }
}

prop_compose! {
    /// As a reader lets them pass.
    fn stretch()(row in row(), part in 0_u8..13, parts in 1_u8..=9, each in 1_u32..100) -> Stretch {
        let unit = part + parts;
        let kind = if row.kind == Kind::LockHandOff { Kind::Prefetched } else { row.kind };
        let (address, count, bytes) = (row.address >> unit << unit, each << parts, u64::from(each) << parts);
        let address = address.min(u64::MAX >> unit << unit) & !(1 << 63);
        Stretch { row: TransactionRow { address, unit, kind, count, bytes, ..row }, parts }
    }
}

prop_compose! {
    fn stretches()(begin: u64, end: u64, stretches in prop::collection::vec(stretch(), 0..6)) -> Stretches {
        Stretches { begin, end, stretches }
    }
}

prop_compose! {
    fn started()(ranges in prop::collection::vec((address(), 0_u64..0x8000, 0_usize..4), 0..4)) -> Started {
        let kinds = [SegmentKind::Heap, SegmentKind::Stacks, SegmentKind::Data, SegmentKind::Mapping];
        let segments: Vec<SegmentRecord> = ranges
            .iter()
            .map(|&(start, bytes, kind)| SegmentRecord { start, end: start.wrapping_add(bytes), kind: kinds[kind] })
            .collect();
        let image = |segment: &SegmentRecord| ImageRecord { start: segment.start, end: segment.end, ..ImageRecord::default() };
        Started { images: segments.iter().map(image).collect(), segments, ..Started::default() }
    }
}

prop_compose! {
    fn recording()(
        nodes in 3_u16..6,
        page_bytes in prop::sample::select(vec![4096_u32, 0, 77, 65536]),
        started in many(started(), 4),
        objects in many((address(), 0_u64..5000, 0_u32..4, 0_u32..4), 30),
        sites in many((0_u32..4, prop::collection::vec(0x40_3000_u64..0x40_3004, 0..3)), 6),
        threads in many((0_u32..4, address(), any::<u64>()), 4),
        intervals in many(interval(), 6),
        stretches in many(stretches(), 4),
        written in many((address(), any::<u64>(), prop::collection::vec(any::<u64>(), 0..66)), 10),
        references in many((address(), address()), 10),
        ended in many(any::<u64>(), 4),
    ) -> Recording {
        fn with<A, B>(list: Vec<(u16, A)>, make: impl Fn(A) -> B) -> Vec<(u16, B)> {
            list.into_iter().map(|(node, what)| (node, make(what))).collect()
        }
        Recording {
            run: RunRecord { nodes, page_bytes, ..RunRecord::default() },
            started,
            objects: with(objects, |(address, bytes, site, thread)| BlockRecord { address, bytes, site, thread }),
            sites: with(sites, |(number, stack)| SiteRecord { number, stack }),
            threads: with(threads, |(number, stack_start, stack_end)| ThreadRecord {
                number, stack_start, stack_end, routine: 0, time: 0,
            }),
            intervals,
            stretches,
            written: with(written, |(address, blocks, bytes)| WrittenRecord { address, blocks, bytes }),
            references: with(references, |(address, value)| Reference { address, value }),
            ended: with(ended, |time| End { time, ..End::default() }),
            ..Recording::default()
        }
    }
}

fn sum<'a>(totals: impl Iterator<Item = &'a Totals>) -> Totals {
    totals.fold(Totals::default(), |sum, more| Totals {
        reads: sum.reads + more.reads,
        writes: sum.writes + more.writes,
        cold: sum.cold + more.cold,
        excess: sum.excess + more.excess,
        ahead: sum.ahead + more.ahead,
        upgrades: sum.upgrades + more.upgrades,
        diffs: sum.diffs + more.diffs,
        notices: sum.notices + more.notices,
        invalidations: sum.invalidations + more.invalidations,
        recalls: sum.recalls + more.recalls,
        bytes: sum.bytes + more.bytes,
    })
}

/// What the rows say, counted the plain way.
fn of_rows(recording: &Recording) -> Totals {
    let mut totals = Totals::default();
    for (_, _, row) in recording.rows() {
        let count = u64::from(row.count);
        let to = match row.kind {
            Kind::Read | Kind::ColdRead | Kind::ExcessRead => &mut totals.reads,
            Kind::Write | Kind::ColdWrite | Kind::ExcessWrite => &mut totals.writes,
            Kind::Prefetched => &mut totals.ahead,
            Kind::Upgrade => &mut totals.upgrades,
            Kind::Diff => &mut totals.diffs,
            Kind::Notice => &mut totals.notices,
            Kind::Invalidation => &mut totals.invalidations,
            Kind::Recall => &mut totals.recalls,
            Kind::LockHandOff => continue,
        };
        *to += count;
        totals.bytes += row.bytes;
        match row.kind {
            Kind::ColdRead | Kind::ColdWrite => totals.cold += count,
            Kind::ExcessRead | Kind::ExcessWrite => totals.excess += count,
            _ => {}
        }
    }
    totals
}

fn source() -> Source {
    let counters = Known { name: "counters", start: DATA + 4, bytes: 64, element: 4, ..Known::default() };
    let grid =
        Known { name: "grid", start: DATA + 0x100, bytes: 8, element: 8, pointer: true, ..Known::default() };
    let table = Known { name: "table", start: DATA + 0x800, bytes: 0x2000, ..Known::default() };
    Source(vec![counters, grid, table])
}

proptest! {
    #[test]
    fn areas_nodes_and_slots_add_up_to_the_rows(recording in recording(), named: bool) {
        let analysis = if named { analyse(&recording, &source()) } else { analyse(&recording, &NoNames) };
        let expected = of_rows(&recording);
        prop_assert_eq!(analysis.totals, expected);
        prop_assert_eq!(sum(analysis.areas.iter().map(|area| &area.totals)), expected);
        prop_assert_eq!(sum(analysis.nodes.iter().map(|node| &node.totals)), expected);
        for area in &analysis.areas {
            prop_assert_eq!(sum(area.nodes.iter().map(|node: &AreaNode| &node.totals)), area.totals);
            prop_assert!(area.ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
        let in_time = sum(analysis.timeline.iter().flat_map(|slot| &slot.nodes));
        prop_assert_eq!(in_time, expected);
        prop_assert!(analysis.timeline.len() <= 200);
        prop_assert!(analysis.cells.is_sorted_by_key(|cell| cell.address));
        prop_assert!(analysis.cells.iter().all(|cell| (cell.area as usize) < analysis.areas.len()));
        prop_assert_eq!(
            analysis.locks.iter().flat_map(|lock| &lock.hand_offs).sum::<u64>(),
            recording.intervals.iter().flat_map(|(_, interval)| &interval.rows)
                .filter(|row| row.kind == Kind::LockHandOff).map(|row| u64::from(row.count)).sum::<u64>()
        );
        let text = serde_json::to_string(&analysis).unwrap();
        prop_assert!(serde_json::from_str::<gondwana_analysis::Analysis>(&text).is_ok());
    }
}

proptest! {
    /// Whether or not the parts of stretches are rows of their own is nothing that the analysis tells.
    #[test]
    fn stretches_are_as_the_rows_of_their_parts(recording in recording()) {
        let mut by_parts = recording.clone();
        for (node, it) in std::mem::take(&mut by_parts.stretches) {
            let rows = it.stretches.iter().flat_map(Stretch::rows).collect();
            by_parts.intervals.push((node, Interval { begin: it.begin, end: it.end, rows }));
        }
        prop_assert_eq!(analyse(&recording, &source()), analyse(&by_parts, &source()));
    }
}

/// Time grows with the count of rows and blocks, not with their product, which would be hours here.
#[test]
fn many_small_blocks_are_no_trouble() {
    let count = 200_000_u64;
    let mut made = common::Made::new(2);
    made.recording.sites = (1..=2)
        .map(|number| (0, SiteRecord { number, stack: vec![0x40_3000 + u64::from(number)] }))
        .collect();
    let blocks = (0..count).map(|index| {
        (0, BlockRecord { address: HEAP + index * 48, bytes: 32, site: 1 + (index % 2) as u32, thread: 0 })
    });
    made.recording.objects = blocks.collect();
    let rows = (0..count).map(|index| TransactionRow {
        address: (HEAP + index * 48) & !31,
        unit: 5,
        kind: Kind::Read,
        direction: Direction::Out,
        peer: 0,
        thread: 1,
        code: 0,
        count: 1,
        bytes: 4096,
    });
    made.recording.intervals = vec![(1, Interval { begin: 0, end: 1, rows: rows.collect() })];
    let began = std::time::Instant::now();
    let analysis = made.analyse(&Source::default());
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(analysis.areas.iter().map(|area| area.totals.reads).sum::<u64>(), count);
    assert_eq!(analysis.areas.iter().map(|area| area.objects).sum::<u64>(), count);
}
