//! Whose data it is.

mod common;

use common::{DATA, HEAP, Known, Made, PAGE, Source, area};
use gondwana_analysis::{Layouts, ObjectSeries, Origin, Totals};
use gondwana_monitor::Kind;
use gondwana_recording::Name;

#[test]
fn blocks_of_one_place_are_one_area_on_all_nodes() {
    let mut made = Made::new(2);
    for index in 0..100_u64 {
        made.block(0, HEAP + index * 64, 48, &[0x40_3011, 0x40_4022]);
    }
    made.block(1, HEAP + PAGE * 10, 48, &[0x40_3011, 0x40_4022]);
    made.touch(1, Kind::ColdRead, HEAP + 128, 0, 1).page(0, Kind::ColdRead, HEAP + PAGE * 10, 1, 2);
    let analysis = made.analyse(&Source::default());
    let found = area(&analysis, "make_grid, grid.c:17");
    assert_eq!((found.objects, found.bytes, found.totals.reads), (101, 101 * 48, 3));
    assert_eq!(found.ranges, [HEAP..HEAP + 99 * 64 + 48, HEAP + PAGE * 10..HEAP + PAGE * 10 + 48]);
    let Origin::Allocation { site, caller, library, stack, threads } = &found.origin else {
        panic!("{:?}", found.origin)
    };
    assert_eq!((&site[..], &library[..], &threads[..]), ("make_grid+0x11", "", &[0, 1][..]));
    assert_eq!(caller, "main+0x22");
    assert_eq!(stack, &["make_grid, grid.c:17", "main, grid.c:34"]);
}

#[test]
fn places_with_the_same_innermost_call_are_told_apart_by_who_called() {
    let mut made = Made::new(2);
    made.block(0, HEAP, 4096, &[0x40_3011, 0x40_4022]).block(0, HEAP + PAGE, 4096, &[0x40_3011, 0x40_4033]);
    made.page(1, Kind::ColdRead, HEAP, 0, 2).page(1, Kind::ColdRead, HEAP + PAGE, 0, 1);
    let analysis = made.analyse(&Source::default());
    let names: Vec<&str> = analysis.areas.iter().map(|area| &area.name[..]).collect();
    assert_eq!(
        names,
        ["make_grid, grid.c:17 from main, grid.c:34", "make_grid, grid.c:17 from main, grid.c:51"]
    );
}

/// A plan names no caller of a function that calls itself: at most depths that is another one.
#[test]
fn blocks_of_a_function_that_calls_itself_are_one_area_at_any_depth() {
    let mut made = Made::new(2);
    for depth in 0..12 {
        // The function's two calls of itself in turn, and nothing beyond the twelfth call.
        let itself = (0..depth).map(|call| 0x40_3040 + call % 2 * 0x10);
        let stack: Vec<u64> = [0x40_3011].into_iter().chain(itself).chain([0x40_4022]).take(12).collect();
        made.block(0, HEAP + depth * 64, 48, &stack).touch(1, Kind::ColdRead, HEAP + depth * 64, 0, 1);
    }
    let analysis = made.analyse(&Source::default());
    assert_eq!(analysis.areas.len(), 1, "{:?}", analysis.areas);
    let found = area(&analysis, "make_grid, grid.c:17");
    assert_eq!((found.objects, found.totals.reads), (12, 12));
    let Origin::Allocation { site, caller, stack, .. } = &found.origin else { panic!("{:?}", found.origin) };
    assert_eq!((&site[..], &caller[..]), ("make_grid+0x11", ""));
    assert_eq!(stack, &["make_grid, grid.c:17", "main, grid.c:34"]);
}

/// Without names there is still what is in the recording.
#[test]
fn what_has_no_name_goes_by_what_it_is() {
    let stack = HEAP + (1 << 32);
    let mapping = HEAP + (3 << 32);
    let mut made = Made::new(2);
    made.thread(1, 3, stack..stack + 4 * PAGE).block(0, HEAP + (1 << 20), 64, &[0x1234]);
    // Of the memory of the thread, which has ended, some was allocated.
    made.block(0, stack + PAGE, PAGE, &[0x5678]).touch(0, Kind::Read, stack + PAGE, 1, 7);
    for (address, count) in [(DATA, 6), (HEAP, 5), (HEAP + (1 << 20), 4), (stack, 3), (mapping, 2), (0x10, 1)]
    {
        made.touch(0, Kind::Read, address, 1, count);
    }
    let analysis = gondwana_analysis::analyse(&made.recording, &gondwana_analysis::NoNames);
    let names: Vec<&str> = analysis.areas.iter().map(|area| &area.name[..]).collect();
    let expected = [
        "0x5678",
        "data without names",
        "heap at 0x1000000000",
        "0x1234",
        "stack of thread 3",
        "mapping at 0x1300000000",
        "other memory",
    ];
    assert_eq!(names, expected);
    assert_eq!(analysis.areas[0].places[0].text, "0x401000");
    assert!(analysis.notes.iter().any(|note| note.contains("compile with -g")), "{:?}", analysis.notes);
}

/// What the program has named goes by that, in heaps and among variables, wherever it has named it.
#[test]
fn names_that_the_program_gives_come_first() {
    let mut made = Made::new(2);
    made.block(0, HEAP, 8 * PAGE, &[0x40_3011]);
    let name = |start, end, name: &str| (0, Name { start, end, name: name.to_owned() });
    made.recording.names = vec![
        name(HEAP + PAGE, HEAP + 3 * PAGE, "halo"),
        name(HEAP + 2 * PAGE, HEAP + 3 * PAGE, "corner"),
        name(DATA, DATA + 64, "halo"),
    ];
    for (address, count) in [(HEAP + PAGE, 4), (DATA, 2), (HEAP + 2 * PAGE + 32, 3), (HEAP + 4 * PAGE, 1)] {
        made.touch(1, Kind::Read, address, 0, count);
    }
    let analysis = made.analyse(&Source::default());
    let reads = |name: &str| area(&analysis, name).totals.reads;
    assert_eq!([reads("halo"), reads("corner"), reads("make_grid, grid.c:17")], [6, 3, 1]);
    assert_eq!(area(&analysis, "halo").origin, Origin::Other);
}

#[test]
fn pages_are_shared_out_among_those_who_have_them() {
    let source = Source(vec![
        Known { name: "large", start: DATA, bytes: 3072, ..Known::default() },
        Known { name: "small", start: DATA + 3072, bytes: 1024, ..Known::default() },
        Known { name: "next", start: DATA + PAGE, bytes: 8, ..Known::default() },
    ]);
    let mut made = Made::new(2);
    made.page(1, Kind::Prefetched, DATA, 0, 4).page(1, Kind::ColdRead, DATA, 0, 1);
    // Of a page that is mostly nobody's.
    made.page(1, Kind::Prefetched, DATA + PAGE, 0, 1);
    // Who is told of writes is told of the bytes that the other wrote.
    made.page(0, Kind::Notice, DATA, 1, 8).written(1, DATA + 3072..DATA + 3080);
    let analysis = made.analyse(&source);
    let totals = |name| area(&analysis, name).totals;
    assert_eq!(
        totals("large"),
        Totals { ahead: 3, reads: 1, cold: 1, bytes: 4 * PAGE - PAGE / 4, ..Totals::default() }
    );
    assert_eq!(totals("small"), Totals { ahead: 1, notices: 8, bytes: PAGE + PAGE / 4, ..Totals::default() });
    assert_eq!(totals("next").ahead, 1);
    assert_eq!(area(&analysis, "small").nodes[1].written, 8);
}

#[test]
fn elements_of_blocks_are_named_by_the_pointer() {
    let bodies = Known {
        name: "bodies",
        start: DATA,
        bytes: 8,
        element: 64,
        fields: vec![(0, "position"), (24, "mass")],
        pointer: true,
    };
    let mut made = Made::new(2);
    made.block(0, HEAP, 640, &[0x40_3011]).pointer(DATA, HEAP);
    made.row(1, Kind::Read, HEAP + 64 + 24, 3, 0, 5).row(1, Kind::Read, HEAP + 128, 3, 0, 2);
    let analysis = made.analyse(&Source(vec![bodies]));
    let fields: Vec<_> = area(&analysis, "bodies").fields.iter().map(|f| (&f.name[..], f.reads)).collect();
    assert_eq!(fields, [("[].mass", 5), ("[].position", 2)]);
}

#[test]
fn areas_are_made_of_variables_and_blocks() {
    let source = Source(vec![
        Known { name: "total", start: DATA, bytes: 8, ..Known::default() },
        Known { name: "rows", start: DATA + 64, bytes: 8, element: 8, pointer: true, ..Known::default() },
    ]);
    let mut made = Made::new(2);
    for row in [0, 1, 2, 5] {
        made.block(0, HEAP + row * 96, 80, &[0x40_3011]);
    }
    // A place of which nothing crosses between the nodes is no area.
    made.block(0, HEAP + PAGE, 80, &[0x40_3022]).pointer(DATA + 64, HEAP + 192);
    made.row(1, Kind::Read, DATA, 3, 0, 9).row(1, Kind::Read, HEAP, 3, 0, 5);
    let analysis = made.analyse(&source);
    let place = |name| (0..).zip(&analysis.areas).find(|(_, area)| area.name == name).unwrap().0;
    let (total, rows) = (place("total"), place("rows"));
    let name = |name| (0..).zip(&analysis.objects.names).find(|(_, known)| *known == name).unwrap().0;
    let thing = |start, step, count| ObjectSeries {
        start,
        step,
        count,
        bytes: 80,
        area: rows,
        name: name("rows"),
        of: Layouts::PLAIN,
    };
    let variable = ObjectSeries { bytes: 8, area: total, name: name("total"), ..thing(DATA, 0, 1) };
    assert_eq!(
        analysis.objects.series,
        [variable, thing(HEAP, 96, 3), thing(HEAP + 480, 0, 1)],
        "{:?}",
        analysis.objects
    );
}
