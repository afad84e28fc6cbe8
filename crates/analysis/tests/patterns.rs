//! How data of naive programs is shared, as far as pages tell.

mod common;

use common::{DATA, HEAP, Known, Made, PAGE, Source, area};
use gondwana_analysis::{Analysis, Pattern, UsedBytes};
use gondwana_monitor::Kind;
use gondwana_page::PAGE_SIZE;

fn variable(name: &'static str, start: u64, bytes: u64) -> Known {
    Known { name, start, bytes, ..Known::default() }
}

fn sides(analysis: &Analysis, name: &str) -> Vec<(u16, bool, String)> {
    let side = |writer: &UsedBytes| (writer.node, writer.writes, writer.name.clone());
    area(analysis, name).falsely_shared[0].writers.iter().map(side).collect()
}

/// An array with an element for each of four nodes. Node 0 is the home: of its writes only the first addresses are known.
#[test]
fn counters_in_one_page_are_falsely_shared() {
    let counters = Known { element: 4, ..variable("counters", DATA + 0x40, 16) };
    let mut made = Made::new(4);
    made.touch(0, Kind::Upgrade, DATA + 0x40, 0, 50).page(1, Kind::Notice, DATA, 0, 50);
    for node in 1..4_u16 {
        let own = DATA + 0x40 + 4 * u64::from(node);
        made.touch(node, Kind::ColdWrite, own, 0, 1).touch(node, Kind::Write, own, 0, 50);
        made.page(node, Kind::Diff, DATA, 0, 50).written(node, own..own + 4);
    }
    let analysis = made.analyse(&Source(vec![counters]));
    let found = area(&analysis, "counters");
    assert_eq!(found.pattern, Pattern::FalselyShared);
    assert_eq!((found.falsely_shared.len(), found.falsely_shared[0].fetches), (1, 153));
    assert_eq!(
        sides(&analysis, "counters"),
        [0, 1, 2, 3].map(|node| (node, true, format!("counters[{node}]")))
    );
    assert_eq!(found.nodes[2].from, [51, 0, 0, 0]);
    assert_eq!(found.nodes[2].written, 4);
}

/// The same where no bytes are known, as under sequential consistency, and each element has a unit of its own.
#[test]
fn addresses_of_write_fetches_tell_what_diffs_would() {
    let counters = Known { element: 32, ..variable("counters", DATA, 64) };
    let mut made = Made::new(2);
    made.touch(0, Kind::Write, DATA, 1, 40).touch(1, Kind::Write, DATA + 32, 0, 40);
    made.page(0, Kind::Recall, DATA, 1, 40).page(1, Kind::Recall, DATA, 0, 40);
    let analysis = made.analyse(&Source(vec![counters]));
    assert_eq!(area(&analysis, "counters").pattern, Pattern::FalselyShared);
    assert_eq!(
        sides(&analysis, "counters"),
        [(0, true, "counters[0]".to_owned()), (1, true, "counters[1]".to_owned())]
    );
}

#[test]
fn counters_with_a_page_each_are_private() {
    let counters = Known { element: PAGE, ..variable("counters", DATA, 3 * PAGE) };
    let mut made = Made::new(3);
    for node in 1..3_u16 {
        let own = DATA + PAGE * u64::from(node);
        made.touch(node, Kind::ColdWrite, own, 0, 1).touch(node, Kind::Upgrade, own, 0, 9);
        made.page(node, Kind::Diff, own, 0, 10).written(node, own..own + 4);
    }
    let analysis = made.analyse(&Source(vec![counters]));
    let found = area(&analysis, "counters");
    assert_eq!((found.pattern, found.falsely_shared.len()), (Pattern::Private, 0));
}

/// One node writes a field, the other reads another one, and gets the page ahead more often than it asks for it.
#[test]
fn prefetched_pages_count_where_the_node_touches_them() {
    let fields = vec![(0, "limit"), (136, "hits")];
    let state = Known { fields, ..variable("state", DATA, 144) };
    let mut made = Made::new(2);
    made.touch(0, Kind::Upgrade, DATA + 136, 1, 44).page(0, Kind::Recall, DATA, 1, 28);
    made.touch(1, Kind::Read, DATA, 0, 53).page(1, Kind::Prefetched, DATA, 0, 66);
    made.page(1, Kind::Invalidation, DATA, 0, 94);
    let analysis = made.analyse(&Source(vec![state]));
    assert_eq!(area(&analysis, "state").pattern, Pattern::FalselyShared);
}

/// All nodes write one field, and read the others, which nobody writes.
#[test]
fn the_hot_field_of_a_structure_is_named() {
    let fields = vec![(0, "size"), (4, "limit"), (40, "hits"), (48, "name")];
    let state = Known { fields, ..variable("state", DATA, 96) };
    let mut made = Made::new(3);
    for node in 0..3_u16 {
        let peer = (node + 1) % 3;
        made.touch(node, Kind::Read, DATA, peer, 30).touch(node, Kind::Write, DATA + 40, peer, 8);
        made.written(node, DATA + 40..DATA + 48);
    }
    let analysis = made.analyse(&Source(vec![state]));
    assert_eq!(area(&analysis, "state").pattern, Pattern::FalselyShared);
    let sides = sides(&analysis, "state");
    assert_eq!(
        sides.iter().filter(|side| side.1).collect::<Vec<_>>(),
        [0, 1, 2].map(|node| (node, true, "state.hits".to_owned())).iter().collect::<Vec<_>>()
    );
    assert!(sides.contains(&(1, false, "state.size..state.limit".to_owned())), "{sides:?}");
    let fields: Vec<_> =
        area(&analysis, "state").fields.iter().map(|f| (&f.name[..], f.reads, f.writes)).collect();
    assert_eq!(fields, [(".size", 90, 0), (".hits", 0, 24)]);
}

/// The variables beside it are nobody's concern but those who lose them.
#[test]
fn a_sum_under_a_lock_migrates_and_what_is_beside_it_is_falsely_shared() {
    let source = Source(vec![
        variable("sum", DATA, 8),
        Known { pointer: true, element: 8, ..variable("grid", DATA + 8, 8) },
        variable("unused", DATA + 16, 0x100),
    ]);
    let mut made = Made::new(3);
    for node in 0..3_u16 {
        let peer = (node + 2) % 3;
        made.touch(node, Kind::Read, DATA, peer, 20).touch(node, Kind::Upgrade, DATA, peer, 20);
        made.page(node, Kind::Diff, DATA, 0, 20).written(node, DATA..DATA + 8);
        made.row(node, Kind::LockHandOff, DATA + 16, 3, peer, 20);
    }
    made.row(2, Kind::Read, DATA + 8, 3, 0, 5);
    let analysis = made.analyse(&source);
    assert_eq!(area(&analysis, "sum").pattern, Pattern::Migratory);
    assert_eq!(area(&analysis, "grid").pattern, Pattern::FalselyShared);
    assert!(analysis.areas.iter().all(|area| area.name != "unused"));
    assert_eq!(
        (&analysis.locks[0].name[..], &analysis.locks[0].hand_offs[..]),
        ("unused", &[20, 20, 20][..])
    );
}

#[test]
fn what_many_write_and_others_read_is_widely_written() {
    let mut made = Made::new(4);
    for node in 0..3_u16 {
        made.touch(node, Kind::Write, DATA, 3, 20).written(node, DATA..DATA + 8);
    }
    made.touch(3, Kind::Read, DATA, 0, 60);
    let analysis = made.analyse(&Source(vec![variable("best", DATA, 8)]));
    assert_eq!(area(&analysis, "best").pattern, Pattern::WidelyWritten);
}

/// Node 0 has initialised all and is the home of all; each node writes its half, and reads a border of the other's.
#[test]
fn grids_whose_borders_neighbours_read_are_produced_and_consumed() {
    let (half, source) =
        (4 * PAGE, Source(vec![Known { pointer: true, element: 8, ..variable("grid", DATA, 8) }]));
    let mut made = Made::new(2);
    made.block(0, HEAP, 2 * half, &[0x40_3011, 0x40_4022]).pointer(DATA, HEAP);
    for page in (HEAP + half..HEAP + 2 * half).step_by(PAGE_SIZE) {
        made.touch(1, Kind::ColdRead, page, 0, 1).touch(1, Kind::Upgrade, page, 0, 20).page(
            1,
            Kind::Diff,
            page,
            0,
            20,
        );
    }
    made.written(1, HEAP + half + 8..HEAP + 2 * half - 8);
    // The first element of a row is never written.
    let (upper, lower) = (HEAP + half - PAGE, HEAP + half);
    made.touch(1, Kind::Read, upper, 0, 20).page(1, Kind::Notice, upper, 0, 20);
    made.touch(0, Kind::Read, lower, 1, 20).page(0, Kind::Notice, lower, 1, 20);
    let analysis = made.analyse(&source);
    let grid = area(&analysis, "grid");
    assert_eq!((grid.pattern, grid.objects, grid.bytes), (Pattern::ProducerConsumer, 1, 2 * half));
    assert_eq!(grid.falsely_shared, []);
    assert_eq!(grid.places[0].text, "grid.c:8");
}

#[test]
fn what_is_only_read_once_it_is_there_is_read_only() {
    let source = Source(vec![variable("table", DATA, 4 * PAGE), variable("late", DATA + 8 * PAGE, PAGE)]);
    let mut made = Made::new(3);
    for page in (DATA..DATA + 4 * PAGE).step_by(PAGE_SIZE) {
        made.touch(1, Kind::ColdRead, page, 0, 1).touch(2, Kind::ColdRead, page, 0, 1).page(
            2,
            Kind::ExcessRead,
            page,
            0,
            1,
        );
        made.page(0, Kind::Recall, page, 1, 1);
    }
    // Initialised by a thread of another node than the home.
    made.touch(1, Kind::ColdWrite, DATA + 8 * PAGE, 0, 1).page(1, Kind::Diff, DATA + 8 * PAGE, 0, 1);
    made.written(1, DATA + 8 * PAGE..DATA + 9 * PAGE).touch(2, Kind::ColdRead, DATA + 8 * PAGE, 0, 1);
    let analysis = made.analyse(&source);
    assert_eq!(area(&analysis, "table").pattern, Pattern::ReadOnly);
    assert_eq!(area(&analysis, "late").pattern, Pattern::ReadOnly);
    assert_eq!(area(&analysis, "table").totals.excess, 4);
}

/// The node that set all elements to zero before the others began is no writer of theirs.
#[test]
fn initialisation_is_no_sharing() {
    let counters = Known { element: 8, ..variable("counters", DATA, 32) };
    let mut made = Made::new(4);
    made.written(0, DATA..DATA + 32);
    for node in 0..4_u16 {
        let own = DATA + 8 * u64::from(node);
        made.row(node, Kind::Write, own, 3, (node + 1) % 4, 30).written(node, own..own + 8);
    }
    let analysis = made.analyse(&Source(vec![counters]));
    assert_eq!(area(&analysis, "counters").pattern, Pattern::FalselyShared);
    assert_eq!(sides(&analysis, "counters")[0], (0, true, "counters[0]".to_owned()));
}

/// A page that main fills, and that one node works on ever after.
#[test]
fn what_is_handed_over_does_not_migrate() {
    let mut made = Made::new(3);
    made.touch(0, Kind::ColdWrite, DATA, 1, 1).page(0, Kind::Diff, DATA, 1, 1).written(0, DATA..DATA + PAGE);
    made.touch(2, Kind::ColdWrite, DATA, 1, 1).touch(2, Kind::Upgrade, DATA, 1, 20);
    made.page(2, Kind::Diff, DATA, 1, 21).written(2, DATA..DATA + PAGE).page(0, Kind::Notice, DATA, 2, 1);
    let analysis = made.analyse(&Source(vec![variable("row", DATA, PAGE)]));
    assert_eq!(area(&analysis, "row").pattern, Pattern::Private);
}

/// It came along with others, and so did the right to write it.
#[test]
fn who_might_have_written_has_not() {
    let mut made = Made::new(3);
    made.touch(2, Kind::ColdWrite, DATA, 0, 1).touch(2, Kind::Upgrade, DATA, 0, 20);
    made.page(2, Kind::Diff, DATA, 0, 21).written(2, DATA..DATA + PAGE);
    made.page(1, Kind::Prefetched, DATA, 0, 9).page(1, Kind::Notice, DATA, 2, 9).page(
        1,
        Kind::Upgrade,
        DATA,
        0,
        4,
    );
    made.recording.intervals.last_mut().expect("it was made").1.rows[0].thread = 0;
    let analysis = made.analyse(&Source(vec![variable("row", DATA, PAGE)]));
    assert_eq!(area(&analysis, "row").pattern, Pattern::ProducerConsumer);
}

/// A home that nobody has seen writing must have, if others lost the page.
#[test]
fn who_fetches_again_from_a_silent_home_consumes_what_it_produces() {
    let mut made = Made::new(2);
    made.touch(1, Kind::ColdRead, DATA, 0, 1).touch(1, Kind::Read, DATA, 0, 30);
    let analysis = made.analyse(&Source(vec![variable("mailbox", DATA, 64)]));
    assert_eq!(area(&analysis, "mailbox").pattern, Pattern::ProducerConsumer);
}
