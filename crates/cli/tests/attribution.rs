//! Attribution of data in recordings of real runs, of programs with known allocations.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_analysis::Names;
use gondwana_recording::{BlockRecord, Recording, SegmentKind, WrittenRecord, read};
use gondwana_symbols::Symbols;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

/// A monitored run.
struct Recorded {
    recording: Recording,
    symbols: Symbols,
    ran: Ran,
    bytes: u64,
}

/// Runs a program on two nodes with `--monitor`.
fn record(folder: &Folder, program: &str, consistency: &str) -> Recorded {
    let place = folder.join(format!("{consistency}.gwr"));
    let option = format!("--monitor={}", place.display());
    let options = ["-n", "2", "--consistency", consistency, &option, "--", program];
    let ran = run(&mut whole().run(folder, &options), LIMIT);
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    let file = File::open(&place).unwrap();
    let bytes = file.metadata().unwrap().len();
    let recording = read(std::io::BufReader::new(file)).unwrap();
    assert_eq!((recording.cut.clone(), recording.ended.len()), (None, 2));
    let (symbols, notes) = Symbols::open(&recording.started[0].1.images);
    assert!(notes.is_empty(), "{notes:?}");
    Recorded { recording, symbols, ran, bytes }
}

impl Recorded {
    /// The functions that an object was allocated by, the innermost first.
    fn stack(&self, node: u16, object: &BlockRecord) -> Vec<String> {
        let mut sites =
            self.recording.sites.iter().filter(|(of, site)| *of == node && site.number == object.site);
        let stack = sites.next().map_or(&[][..], |(_, site)| &site.stack);
        // A call is before its return address.
        stack.iter().flat_map(|address| self.symbols.code(address - 1)).map(|code| code.function).collect()
    }

    /// The objects, with their nodes, that were allocated in a function, with the frames `inside` next.
    fn made_by(&self, function: &str, inside: &[&str]) -> Vec<(u16, BlockRecord)> {
        let chain: Vec<&str> = [&[function], inside].concat();
        let is_called = |name: &str, wanted: &str| name == wanted || name.starts_with(&format!("{wanted}("));
        let matches = |(node, object): &&(u16, BlockRecord)| {
            self.stack(*node, object)
                .windows(chain.len())
                .any(|names| names.iter().zip(&chain).all(|(name, wanted)| is_called(name, wanted)))
        };
        self.recording.objects.iter().filter(matches).copied().collect()
    }

    /// The number of each thread and its node.
    fn nodes_of_threads(&self) -> BTreeMap<u32, u16> {
        self.recording.threads.iter().map(|(node, thread)| (thread.number, *node)).collect()
    }
}

/// How long objects are, in ascending order.
fn lengths(objects: &[(u16, BlockRecord)]) -> Vec<u64> {
    let mut bytes: Vec<u64> = objects.iter().map(|(_, object)| object.bytes).collect();
    bytes.sort_unstable();
    bytes
}

fn blocks_are_known(consistency: &str) -> Recorded {
    let folder = Folder::new();
    folder.compile("known_blocks");
    let recorded = record(&folder, "./known_blocks", consistency);
    assert_eq!(recorded.ran.output, run(&mut native(&folder, "./known_blocks"), LIMIT).output);
    let grid = recorded.made_by("make_grid", &["prepare", "main"]);
    assert_eq!((lengths(&grid), grid[0].0, grid[0].1.thread), (vec![160_000], 0, 0));
    let scratch = recorded.made_by("make_scratch", &["work"]);
    assert_eq!(lengths(&scratch), [3000, 3001, 3002, 3003]);
    let threads = recorded.nodes_of_threads();
    assert_eq!(threads.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(threads.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
    for (node, object) in &scratch {
        // Main is thread 0, and the others have their numbers in the order in which they were created.
        assert_eq!((object.thread.into(), threads[&object.thread]), (object.bytes - 3000 + 1, *node));
    }
    assert_eq!(lengths(&recorded.made_by("make_scratch", &["main"])), [3100]);
    for (function, bytes) in [("make_aligned", 5000), ("grow", 70000), ("make_mapping", 100_000)] {
        assert_eq!(lengths(&recorded.made_by(function, &["work"])), [bytes; 4], "{function}");
    }
    assert_eq!(lengths(&recorded.made_by("make_copy", &["work"])), [13; 4]);
    assert_eq!(lengths(&recorded.made_by("make_deep", &["make_deep", "make_deep"])), [777; 4]);
    pointers_are_found(&recorded, &grid[0].1);
    threads_and_segments_are_known(&recorded);
    recorded
}

fn native(folder: &Folder, program: &str) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.current_dir(&**folder);
    command
}

fn pointers_are_found(recorded: &Recorded, grid: &BlockRecord) {
    let pointers = recorded.recording.references.iter().filter_map(|(_, reference)| {
        let variable = recorded.symbols.variable(reference.address)?;
        Some((variable.name, reference.value))
    });
    let pointers: BTreeSet<(String, u64)> = pointers.collect();
    assert!(pointers.contains(&("grid".to_owned(), grid.address)), "{pointers:?}");
    let unused = recorded.made_by("make_scratch", &["main"])[0].1;
    assert!(pointers.contains(&("unused".to_owned(), unused.address)), "{pointers:?}");
}

fn threads_and_segments_are_known(recorded: &Recorded) {
    let function = |address: u64| recorded.symbols.code(address).into_iter().next_back().unwrap().function;
    for (node, thread) in &recorded.recording.threads {
        assert_eq!(function(thread.routine), if thread.number == 0 { "main" } else { "work" });
        assert!(thread.stack_end - thread.stack_start >= 64 << 10);
        let is_stack = |(of, segment): &&(u16, gondwana_recording::SegmentRecord)| {
            *of == *node
                && segment.kind == SegmentKind::Stacks
                && (segment.start, segment.end) == (thread.stack_start, thread.stack_end)
        };
        assert!(recorded.recording.segments.iter().any(|segment| is_stack(&segment)), "{thread:?}");
    }
    for (node, mapping) in recorded.made_by("make_mapping", &[]) {
        let is_mapping = |(of, segment): &(u16, gondwana_recording::SegmentRecord)| {
            *of == node && segment.kind == SegmentKind::Mapping && segment.start == mapping.address
        };
        assert!(recorded.recording.segments.iter().any(is_mapping), "{mapping:?}");
    }
}

#[test]
fn blocks_have_the_calls_that_they_come_from() {
    let recorded = blocks_are_known("rc");
    let grid = recorded.made_by("make_grid", &[])[0].1;
    let threads = recorded.nodes_of_threads();
    let writer = |byte: &u64| threads[&(((byte - grid.address) / 8 % 4) as u32 + 1)];
    let is_grid = |byte: &u64| (grid.address..grid.address + grid.bytes).contains(byte);
    let mut whole_pages = 0;
    for (node, written) in &recorded.recording.written {
        let told: Vec<u64> = written_bytes(written).filter(is_grid).collect();
        assert!(told.iter().all(|byte| writer(byte) == *node), "{written:x?}");
        let page = written.address..written.address + 4096;
        let expected = page.filter(is_grid).filter(|byte| writer(byte) == *node);
        whole_pages += usize::from(!told.is_empty() && told == expected.collect::<Vec<_>>());
    }
    // The node that main has filled it on needs no diffs.
    assert!(whole_pages > 0, "{} pages", recorded.recording.written.len());
    assert_eq!(recorded.recording.omitted, []);
}

/// The addresses of the bytes that were written.
fn written_bytes(written: &WrittenRecord) -> impl Iterator<Item = u64> {
    let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
    let (address, blocks) = (written.address, written.blocks);
    bits(blocks)
        .zip(written.bytes.clone())
        .flat_map(move |(block, mask)| bits(mask).map(move |bit| address + block * 64 + bit))
}

#[test]
fn blocks_are_known_without_diffs_too() {
    let recorded = blocks_are_known("sc");
    assert_eq!(recorded.recording.written, []);
}

#[test]
fn objects_of_cpp_come_from_the_functions_of_the_program() {
    let folder = Folder::new();
    folder.compile("known_objects");
    for consistency in ["rc", "sc"] {
        let recorded = record(&folder, "./known_objects", consistency);
        assert_eq!(recorded.ran.output, "4 items, 4006\n");
        let items = recorded.made_by("make_item", &["work"]);
        assert_eq!(lengths(&items), [200; 4]);
        assert_eq!(items.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
        assert_eq!(lengths(&recorded.made_by("make_array", &["work"])), [8000, 8008, 8016, 8024]);
        // Frames in between are the C++ library's, as far as they are not inlined.
        let made = recorded.recording.objects.iter().filter(|(node, object)| {
            recorded.stack(*node, object).iter().any(|function| function.starts_with("make_numbers"))
        });
        assert_eq!(lengths(&made.copied().collect::<Vec<_>>()), [24, 20_000]);
    }
}

#[test]
fn a_million_allocations_fit_into_a_recording() {
    let folder = Folder::new();
    folder.compile("many_mallocs");
    let native = run(&mut native(&folder, "./many_mallocs"), LIMIT);
    let recorded = record(&folder, "./many_mallocs", "rc");
    assert_eq!(recorded.ran.output, native.output);
    assert!(recorded.bytes < 16 << 20, "{} bytes", recorded.bytes);
    assert!(recorded.recording.objects.len() > 8 * 1000);
    assert!(recorded.recording.sites.len() < 200, "{} places", recorded.recording.sites.len());
}
