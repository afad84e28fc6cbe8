//! What the event sink makes of events.

use super::attribution::Written;
use super::event_sink::{EventSink, Touch};
use crate::wait_slots::WaitSlot;
use gondwana_coherence::{Access, Event, Page};
use gondwana_memory::{Geometry, PAGE_SIZE};
use gondwana_monitor::{BankConfiguration, Direction, Directions, Filter, FilterId, Kind, Kinds};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::sync::Arc;

const ME: NodeId = NodeId(1);
const HOME: NodeId = NodeId(0);
const OTHER: NodeId = NodeId(2);
const PAGES: u32 = 64;
const PAGE: u64 = PAGE_SIZE as u64;
const CODE: usize = 0x40_1234;

fn geometry() -> Geometry {
    Geometry::new(PAGES, &[])
}

fn sink() -> EventSink {
    EventSink::recording(geometry(), false, Arc::new(Written::new()))
}

fn address(page: u32) -> u64 {
    geometry().address_of(page) as u64
}

/// What a row says: kind, direction, address, unit, peer, thread, code, count and bytes.
type Seen = (Kind, Direction, u64, u8, u16, Option<u32>, u64, u32, u64);

fn rows(sink: &mut EventSink) -> Vec<Seen> {
    let rows = sink.table.as_mut().unwrap().rows().iter();
    rows.map(|row| {
        let like = row.key;
        let whose = (like.peer, like.thread, like.code);
        let what = (like.kind, like.direction, like.address, like.unit);
        (what.0, what.1, what.2, what.3, whose.0, whose.1, whose.2, row.count, row.bytes)
    })
    .collect()
}

/// What has happened since the last time.
fn take(sink: &mut EventSink) -> Vec<Seen> {
    let seen = rows(sink);
    sink.table.as_mut().unwrap().clear();
    seen
}

/// A thread touches byte 100 of a page and waits.
fn touch(sink: &mut EventSink, slot: u32, page: u32, access: Access) {
    let touch = Touch { address: to_usize(address(page) + 100), code: CODE, writer: None };
    sink.touches(WaitSlot(slot), Some(slot + 10), Page(page), access, touch);
}

/// Something happens to pages, by no thread in particular.
fn observe(sink: &mut EventSink, event: Event, first: u32, count: u32, peer: NodeId) {
    sink.observes(event, Page(first), count, peer, || None);
}

/// Pages that were asked for arrive, with so many bytes in all.
fn arrive(sink: &mut EventSink, from: NodeId, first: u32, count: u32, bytes: usize) {
    observe(sink, Event::Arrived { bytes: bytes as u64 }, first, count, from);
}

/// A thread of this node sends diffs of equal length.
fn send_diffs(sink: &mut EventSink, first: u32, count: u32, bytes: u32) {
    sink.observes(Event::DiffSent { bytes }, Page(first), count, HOME, || Some(7));
}

/// Counts in pages, over all memory.
fn whole(kinds: Kinds, directions: Directions) -> Filter {
    Filter {
        start: address(0),
        end: address(PAGES - 1) + PAGE,
        unit: 12,
        kinds,
        directions,
        first: None,
        threshold: None,
        partition: None,
    }
}

/// The kinds of what has happened.
fn kinds(sink: &mut EventSink) -> Vec<Kind> {
    take(sink).into_iter().map(|row| row.0).collect()
}

#[test]
fn a_page_is_fetched_by_the_thread_that_waits_for_it_and_those_behind_it_come_ahead() {
    let mut sink = sink();
    touch(&mut sink, 3, 5, Access::Read);
    touch(&mut sink, 4, 9, Access::Write);
    arrive(&mut sink, HOME, 5, 3, 3 * PAGE_SIZE);
    let fetched = (Kind::ColdRead, Direction::Out, address(5) + 100, 2, 0, Some(13), CODE as u64, 1, PAGE);
    let both = (Kind::Prefetched, Direction::Out, address(6), 13, 0, Some(13), CODE as u64, 2, 2 * PAGE);
    assert_eq!(take(&mut sink), [fetched, both]);
    arrive(&mut sink, HOME, 9, 1, 0);
    let untouched = (Kind::ColdWrite, Direction::Out, address(9) + 100, 2, 0, Some(14), CODE as u64, 1, 0);
    assert_eq!(take(&mut sink), [untouched]);
    // The thread has gone on: whatever comes now, it is not for it.
    sink.resumed(WaitSlot(3));
    arrive(&mut sink, HOME, 5, 1, PAGE_SIZE);
    assert_eq!(take(&mut sink), [(Kind::Prefetched, Direction::Out, address(5), 12, 0, None, 0, 1, PAGE)]);
}

/// A read that is made as a write, because the next instruction has always written, is recorded as both.
#[test]
fn what_is_read_and_asked_for_to_be_written_is_recorded_as_read_and_written() {
    const WRITER: usize = CODE + 8;
    let mut sink = sink();
    let touch = |sink: &mut EventSink, page, writer| {
        let touch = Touch { address: to_usize(address(page) + 100), code: CODE, writer };
        sink.touches(WaitSlot(0), Some(10), Page(page), Access::Write, touch);
    };
    let read =
        |page| (Kind::ColdRead, Direction::Out, address(page) + 100, 2, 0, Some(10), CODE as u64, 1, PAGE);
    let ahead =
        |page| (Kind::Prefetched, Direction::Out, address(page), 12, 0, Some(10), CODE as u64, 1, PAGE);
    let written = |page| (Kind::Upgrade, Direction::Out, address(page), 12, 0, Some(10), WRITER as u64, 1, 0);
    touch(&mut sink, 5, Some(WRITER));
    observe(&mut sink, Event::Asked, 5, 2, HOME);
    sink.asked();
    arrive(&mut sink, HOME, 5, 2, 2 * PAGE_SIZE);
    // What will be written is one run.
    assert_eq!(take(&mut sink), [read(5), written(5), written(6), ahead(6)]);
    sink.resumed(WaitSlot(0));
    // From the memory of their home, while the fault is handled.
    touch(&mut sink, 9, Some(WRITER));
    sink.fetches(HOME, Page(9), 1);
    sink.asked();
    assert_eq!(kinds(&mut sink), [Kind::ColdRead, Kind::Upgrade]);
    sink.resumed(WaitSlot(0));
    // What another thread only reads came with what the first one will write.
    touch(&mut sink, 15, Some(WRITER));
    observe(&mut sink, Event::Asked, 15, 1, HOME);
    observe(&mut sink, Event::Asked, 18, 1, HOME);
    sink.asked();
    let read_only = Touch { address: to_usize(address(18)), code: CODE, writer: None };
    sink.touches(WaitSlot(1), Some(11), Page(18), Access::Read, read_only);
    sink.asked();
    arrive(&mut sink, HOME, 18, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::ColdRead]);
    arrive(&mut sink, HOME, 15, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::ColdRead, Kind::Upgrade]);
    sink.resumed(WaitSlot(0));
    sink.resumed(WaitSlot(1));
    // The program's own writes are no reads.
    touch(&mut sink, 12, None);
    observe(&mut sink, Event::Asked, 12, 2, HOME);
    sink.asked();
    arrive(&mut sink, HOME, 12, 1, PAGE_SIZE);
    arrive(&mut sink, HOME, 20, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::ColdWrite, Kind::Prefetched]);
}

#[test]
fn the_past_of_a_page_says_which_kind_of_miss_a_fetch_is() {
    let mut sink = sink();
    touch(&mut sink, 0, 5, Access::Read);
    arrive(&mut sink, HOME, 5, 1, PAGE_SIZE);
    // Given up for another reason than a writer.
    observe(&mut sink, Event::Left { exclusive: false, written: false }, 5, 1, HOME);
    arrive(&mut sink, HOME, 5, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::ColdRead, Kind::ExcessRead]);
    // Another node's write is heard of, and the copy given up: the writer is to blame, not the one who tells.
    observe(&mut sink, Event::NoticeReceived, 5, 1, OTHER);
    observe(&mut sink, Event::Invalidated, 5, 1, HOME);
    let suffered = |kind| (kind, Direction::In, address(5), 12, OTHER.0, None, 0, 1, 0);
    assert_eq!(take(&mut sink), [suffered(Kind::Notice), suffered(Kind::Invalidation)]);
    arrive(&mut sink, HOME, 5, 1, PAGE_SIZE);
    observe(&mut sink, Event::Overtaken, 5, 1, HOME);
    arrive(&mut sink, HOME, 5, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::Read], "twice");
}

#[test]
fn an_answer_about_pages_that_are_here_brings_nothing() {
    let mut sink = sink();
    touch(&mut sink, 0, 5, Access::Read);
    observe(&mut sink, Event::Answered, 5, 1, HOME);
    assert_eq!(take(&mut sink), []);
    observe(&mut sink, Event::Given { bytes: 2 * PAGE }, 5, 2, HOME);
    let placed = |page| (Kind::Prefetched, Direction::In, address(page), 12, 0, None, 0, 1, PAGE);
    assert_eq!(take(&mut sink), [placed(5), placed(6)]);
}

#[test]
fn an_answer_without_contents_is_an_upgrade_of_which_the_protocol_tells() {
    let mut sink = sink();
    touch(&mut sink, 0, 5, Access::Write);
    observe(&mut sink, Event::Answered, 5, 1, OTHER);
    assert_eq!(take(&mut sink), []);
    observe(&mut sink, Event::Upgraded, 5, 1, HOME);
    let upgrade = (Kind::Upgrade, Direction::Out, address(5) + 100, 2, 0, Some(10), CODE as u64, 1, 0);
    assert_eq!(take(&mut sink), [upgrade]);
    arrive(&mut sink, OTHER, 5, 1, 0);
    arrive(&mut sink, OTHER, 5, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::ColdWrite, Kind::ExcessWrite]);
    // Of a reader's page nobody here knows the writer.
    sink.resumed(WaitSlot(0));
    touch(&mut sink, 0, 6, Access::Read);
    observe(&mut sink, Event::Upgraded, 6, 1, HOME);
    assert_eq!(take(&mut sink), [(Kind::Upgrade, Direction::Out, address(6), 12, 0, None, 0, 1, 0)]);
}

#[test]
fn recalls_are_of_pages_that_a_node_had_for_itself() {
    let mut sink = sink();
    observe(&mut sink, Event::Shared, 1, 1, OTHER);
    observe(&mut sink, Event::Left { exclusive: true, written: true }, 2, 1, OTHER);
    observe(&mut sink, Event::Left { exclusive: true, written: false }, 3, 1, OTHER);
    observe(&mut sink, Event::Left { exclusive: false, written: true }, 4, 1, OTHER);
    let recall = |page| (Kind::Recall, Direction::In, address(page), 12, OTHER.0, None, 0, 1, 0);
    assert_eq!(take(&mut sink), [recall(1), recall(2)]);
}

#[test]
fn a_diff_is_recorded_where_it_was_made_and_counted_at_both_ends() {
    let mut sink = sink();
    let mut configuration = BankConfiguration::default();
    let [out, into] = [Directions::Out, Directions::In]
        .map(|directions| configuration.set(whole(Kinds::of(&[Kind::Diff]), directions)).unwrap());
    sink.bank = Some(Arc::clone(configuration.bank()));
    send_diffs(&mut sink, 3, 1, 40);
    assert_eq!(take(&mut sink), [(Kind::Diff, Direction::Out, address(3), 12, 0, Some(7), 0, 1, 40)]);
    // What comes here is not this node's to record.
    for _ in 0..2 {
        observe(&mut sink, Event::DiffReceived { bytes: 8 }, 6, 1, OTHER);
    }
    assert_eq!(take(&mut sink), []);
    let counted = |id: FilterId| -> Vec<(usize, u64)> {
        configuration.counters(id).unwrap().enumerate().filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!((counted(out), counted(into)), (vec![(3, 1)], vec![(6, 2)]));
}

#[test]
fn what_is_served_is_counted_as_what_was_asked_for() {
    let mut sink = sink();
    let mut configuration = BankConfiguration::default();
    let [reads, writes, notices_sent] =
        [("reads", Directions::In), ("writes", Directions::In), ("notice", Directions::Out)]
            .map(|(kinds, directions)| configuration.set(whole(kinds.parse().unwrap(), directions)).unwrap());
    sink.bank = Some(Arc::clone(configuration.bank()));
    for write in [false, true] {
        observe(&mut sink, Event::Served { write }, 2, 2, OTHER);
    }
    observe(&mut sink, Event::NoticeSent, 9, 1, OTHER);
    let sum = |id| configuration.counters(id).unwrap().sum::<u64>();
    assert_eq!((sum(reads), sum(writes), sum(notices_sent)), (2, 2, 1));
    assert_eq!(take(&mut sink), [], "those who have asked record it");
}

#[test]
fn events_of_pages_that_do_not_exist_are_left_out() {
    let mut sink = sink();
    arrive(&mut sink, HOME, PAGES - 1, 2, 2 * PAGE_SIZE);
    arrive(&mut sink, HOME, u32::MAX, 2, 2 * PAGE_SIZE);
    observe(&mut sink, Event::NoticeReceived, PAGES, 1, OTHER);
    observe(&mut sink, Event::Given { bytes: 0 }, PAGES, 1, HOME);
    assert_eq!(take(&mut sink), []);
}

#[test]
fn a_lock_is_taken_by_the_thread_that_gets_it() {
    let mut sink = sink();
    sink.begins_lock();
    sink.grants_lock(Some(4));
    sink.grants_lock(Some(5));
    sink.takes_lock(HOME, 0x1004);
    let taken = |thread| (Kind::LockHandOff, Direction::Out, 0x1004, 2, 0, thread, 0, 1, 0);
    assert_eq!(take(&mut sink), [taken(Some(4))], "the first");
    sink.begins_lock();
    sink.takes_lock(HOME, 0x1004);
    sink.passes_lock(OTHER, 0x1004);
    assert_eq!(take(&mut sink), [taken(None)]);
}

/// Kind, first address, log2 of the bytes and of the parts, and count of each row.
fn blocks(sink: &mut EventSink) -> Vec<(Kind, u64, u8, u8, u32)> {
    let table = sink.table.as_mut().unwrap();
    let rows = table.rows().iter();
    let blocks = rows.map(|row| (row.key.kind, row.key.address, row.key.unit, row.key.parts, row.count));
    let blocks = blocks.collect();
    table.clear();
    blocks
}

#[test]
fn pages_that_come_at_once_are_few_rows_apart_from_those_that_a_thread_waits_for() {
    let mut sink = sink();
    touch(&mut sink, 0, 20, Access::Read);
    touch(&mut sink, 1, 18, Access::Write);
    arrive(&mut sink, HOME, 16, 16, 16 * PAGE_SIZE);
    let table = sink.table.as_mut().unwrap();
    // Who waits is to blame for what comes behind.
    let threads: Vec<_> = table.rows().iter().map(|row| row.key.thread).collect();
    assert_eq!(threads, [None, Some(11), Some(11), Some(10), Some(10), Some(10), Some(10)]);
    assert!(table.rows().iter().all(|row| row.bytes == PAGE * u64::from(row.count)));
    let ahead = |page, unit, parts, count| (Kind::Prefetched, address(page), unit, parts, count);
    let expected = [
        ahead(16, 13, 1, 2),
        (Kind::ColdWrite, address(18) + 100, 2, 0, 1),
        ahead(19, 12, 0, 1),
        (Kind::ColdRead, address(20) + 100, 2, 0, 1),
        ahead(21, 12, 0, 1),
        ahead(22, 13, 1, 2),
        ahead(24, 15, 3, 8),
    ];
    assert_eq!(blocks(&mut sink), expected);
    // All of them were here.
    touch(&mut sink, 2, 31, Access::Read);
    arrive(&mut sink, HOME, 31, 1, PAGE_SIZE);
    assert_eq!(kinds(&mut sink), [Kind::ExcessRead]);
}

#[test]
fn notices_and_invalidations_of_one_writer_are_runs() {
    let mut sink = sink();
    for (first, count) in [(8, 4), (14, 1), (13, 1)] {
        observe(&mut sink, Event::NoticeReceived, first, count, OTHER);
    }
    // A later writer of one of them, and of another.
    for page in [13, 12] {
        observe(&mut sink, Event::NoticeReceived, page, 1, HOME);
    }
    let notice = |page, parts| (Kind::Notice, address(page), 12 + parts, parts, 1_u32 << parts);
    let expected = [notice(8, 2), notice(14, 0), notice(13, 0), notice(13, 0), notice(12, 0)];
    assert_eq!(blocks(&mut sink), expected);
    observe(&mut sink, Event::Invalidated, 8, 8, ME);
    let table = sink.table.as_mut().unwrap();
    let peers: Vec<_> = table.rows().iter().map(|row| row.key.peer).collect();
    assert_eq!(peers, [OTHER.0, HOME.0, OTHER.0, ME.0]);
    let given_up = |page, parts| (Kind::Invalidation, address(page), 12 + parts, parts, 1_u32 << parts);
    assert_eq!(blocks(&mut sink), [given_up(8, 2), given_up(12, 1), given_up(14, 0), given_up(15, 0)]);
}

#[test]
fn upgrades_recalls_and_diffs_of_pages_side_by_side_are_runs() {
    let mut sink = sink();
    touch(&mut sink, 0, 5, Access::Write);
    touch(&mut sink, 1, 6, Access::Read);
    observe(&mut sink, Event::Upgraded, 4, 4, HOME);
    let table = sink.table.as_mut().unwrap();
    let by: Vec<_> = table.rows().iter().map(|row| (row.key.thread, row.key.code)).collect();
    assert!(
        by[0] == (None, 0) && by[1].1 != 0 && by[2] == by[1],
        "what lies behind is written by the same: {by:?}"
    );
    let upgrade = |page, parts| (Kind::Upgrade, address(page), 12 + parts, parts, 1_u32 << parts);
    let exact = (Kind::Upgrade, address(5) + 100, 2, 0, 1);
    assert_eq!(blocks(&mut sink), [upgrade(4, 0), exact, upgrade(6, 1)]);
    observe(&mut sink, Event::Left { exclusive: true, written: true }, 32, 32, OTHER);
    assert_eq!(blocks(&mut sink), [(Kind::Recall, address(32), 17, 5, 32)]);
    for (first, count, bytes) in [(8, 2, 40), (12, 1, 40), (13, 1, 44)] {
        send_diffs(&mut sink, first, count, bytes);
    }
    let diff = |page, parts| (Kind::Diff, address(page), 12 + parts, parts, 1_u32 << parts);
    assert_eq!(blocks(&mut sink), [diff(8, 1), diff(12, 0), diff(13, 0)]);
}

/// The numbers of pages go on where their addresses do not.
#[test]
fn a_run_ends_where_the_addresses_do() {
    let geometry = Geometry::new(4, &[(0x40_2000, 2), (0x80_0000, 4)]);
    let mut sink = EventSink::recording(geometry.clone(), false, Arc::new(Written::new()));
    arrive(&mut sink, HOME, 2, 8, 8 * PAGE_SIZE);
    let ahead = |address, parts| (Kind::Prefetched, address, 12 + parts, parts, 1_u32 << parts);
    let expected = [ahead(geometry.address_of(2) as u64, 1), ahead(0x40_2000, 1), ahead(0x80_0000, 2)];
    assert_eq!(blocks(&mut sink), expected);
}

#[test]
fn filters_count_each_page_of_a_run() {
    let mut sink = sink();
    let mut configuration = BankConfiguration::default();
    let lines = Filter { unit: 5, ..whole(Kinds::of(&[Kind::Prefetched]), Directions::Both) };
    let id = configuration.set(lines).unwrap();
    sink.bank = Some(Arc::clone(configuration.bank()));
    arrive(&mut sink, HOME, 3, 9, 9 * PAGE_SIZE);
    let counted: Vec<usize> = configuration
        .counters(id)
        .unwrap()
        .enumerate()
        .filter(|(_, count)| *count == 1)
        .map(|(unit, _)| unit)
        .collect();
    assert_eq!(counted, (3..12).map(|page| page * PAGE_SIZE / 32).collect::<Vec<_>>());
}

#[test]
fn with_large_units_only_what_is_hot_is_seen_closely() {
    let mut sink = EventSink::recording(geometry(), true, Arc::new(Written::new()));
    touch(&mut sink, 0, 17, Access::Read);
    arrive(&mut sink, HOME, 17, 1, PAGE_SIZE);
    let far = take(&mut sink)[0];
    assert_eq!((far.2, far.3), (address(17) >> 16 << 16, 16));
    // A unit in which much has happened is seen page by page, that beside it is not.
    let far_block = |page, count| (Kind::Prefetched, address(page), 16, 0, count);
    let close_block = |page, parts| (Kind::Prefetched, address(page), 12 + parts, parts, 1_u32 << parts);
    let hot = |sink: &mut EventSink| {
        sink.units =
            Some(gondwana_monitor::UnitRefinement::default().learn(sink.table.as_mut().unwrap().rows()))
    };
    sink.resumed(WaitSlot(0));
    arrive(&mut sink, HOME, 16, 16, 16 * PAGE_SIZE);
    hot(&mut sink);
    assert_eq!(blocks(&mut sink), [far_block(16, 16)]);
    arrive(&mut sink, HOME, 14, 20, 20 * PAGE_SIZE);
    assert_eq!(blocks(&mut sink), [far_block(0, 2), close_block(16, 4), far_block(32, 2)]);
    touch(&mut sink, 0, 17, Access::Read);
    sink.units = None;
    arrive(&mut sink, HOME, 17, 1, PAGE_SIZE);
    assert_eq!(take(&mut sink)[0].2, address(17) + 100);
}
