//! Variables that nodes change by atomic operations.

mod common;

use common::{DATA, HEAP, Known, Made, PAGE, Source};
use gondwana_analysis::AtomicVariable;
use gondwana_monitor::Kind;

/// log2 of the bytes of the unit of a touched address.
const WORD: u8 = 2;

fn source() -> Source {
    let variable = |name, start, bytes| Known { name, start, bytes, ..Known::default() };
    Source(vec![
        variable("counter", DATA, 8),
        variable("plain", DATA + 8, 8),
        variable("table", DATA + PAGE, 2 * PAGE),
        Known {
            element: 64,
            fields: vec![(0, "head"), (16, "tail")],
            pointer: true,
            ..variable("queue", DATA + 64, 8)
        },
    ])
}

fn names(variables: &[AtomicVariable]) -> Vec<&str> {
    variables.iter().map(|variable| &variable.name[..]).collect()
}

#[test]
fn variables_are_named_with_their_nodes_threads_and_lines() {
    let mut made = Made::new(3);
    made.block(0, HEAP, 128, &[0x40_3001]).pointer(DATA + 64, HEAP);
    // The second field of the second element. Threads that wait for it read it.
    made.row(1, Kind::ColdWrite, HEAP + 64 + 16, WORD, 0, 1);
    made.row(2, Kind::Upgrade, HEAP + 64 + 16, WORD, 0, 4);
    made.row(0, Kind::Read, HEAP + 64 + 16, WORD, 2, 20);
    made.row(1, Kind::Write, DATA, WORD, 0, 7);
    // Never changed by an atomic operation, on the same page.
    made.row(1, Kind::Read, DATA + 8, WORD, 0, 100);
    // What nobody waited for, and what nobody knows the code of.
    made.row(1, Kind::Prefetched, DATA, WORD, 0, 50).page(0, Kind::Notice, DATA, 1, 50);
    let atomics = made.analyse(&source()).atomics;
    assert_eq!(names(&atomics), ["queue[1].tail", "counter"]);
    let queue = &atomics[0];
    assert_eq!((queue.address, queue.misses()), (HEAP + 80, 25));
    assert_eq!((&queue.nodes[..], &queue.threads[..]), (&[20, 1, 4][..], &[0, 1, 2][..]));
    let places: Vec<_> = queue.places.iter().map(|place| (place.reads, place.writes)).collect();
    assert_eq!(places, [(20, 0), (0, 4), (0, 1)]);
    assert!(queue.places.iter().all(|place| place.text.starts_with("grid.c:") && place.function == "work"));
    assert_eq!((atomics[1].address, &atomics[1].nodes[..]), (DATA, &[0, 7, 0][..]));
}

#[test]
fn of_large_units_atomic_operations_count_for_the_area() {
    let mut made = Made::new(2);
    made.page(1, Kind::Write, DATA + PAGE, 0, 3);
    // These may be about anything there.
    made.page(1, Kind::Read, DATA + PAGE, 0, 40);
    let atomics = made.analyse(&source()).atomics;
    assert_eq!(names(&atomics), ["table"]);
    assert_eq!((atomics[0].address, atomics[0].misses()), (DATA + PAGE, 3));
}

/// A page comes to be read if the next instruction will write it: then only the page is known, and who writes.
#[test]
fn an_instruction_that_touches_one_variable_of_a_page_means_that_one() {
    let mut made = Made::new(2);
    made.row(1, Kind::Upgrade, DATA + PAGE + 8, WORD, 0, 1).page(1, Kind::Upgrade, DATA + PAGE, 0, 30);
    let atomics = made.analyse(&source()).atomics;
    assert_eq!((names(&atomics), atomics[0].misses()), (vec!["table+0x8"], 31));
    made.row(1, Kind::Upgrade, DATA + PAGE + 16, WORD, 0, 1);
    let atomics = made.analyse(&source()).atomics;
    assert_eq!(names(&atomics), ["table", "table+0x8", "table+0x10"]);
    assert_eq!(atomics.iter().map(AtomicVariable::misses).collect::<Vec<_>>(), [30, 1, 1]);
}

#[test]
fn programs_without_atomic_operations_have_none() {
    let mut made = Made::new(2);
    made.row(1, Kind::Read, DATA, WORD, 0, 7);
    assert_eq!(made.analyse(&source()).atomics, []);
}

#[test]
fn sums_do_not_overflow() {
    let mut made = Made::new(2);
    for node in [0, 1] {
        made.row(node, Kind::Write, DATA, WORD, 1 - node, u32::MAX);
    }
    assert_eq!(made.analyse(&source()).atomics[0].misses(), 2 * u64::from(u32::MAX));
}
