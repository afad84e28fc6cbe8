//! Recordings of real runs with `--monitor`.

mod common;

use common::endless::Endless;
use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_monitor::{Direction, Kind, Kinds};
use gondwana_recording::{Recording, SegmentKind, Stretch, TransactionRow, read};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How often main writes and the other thread reads in `turns.c`.
const TURNS: u64 = 100;

fn recording(file: &Path) -> Recording {
    read(File::open(file).unwrap()).unwrap()
}

/// Records a program; returns its result and the recording.
fn record(folder: &Path, options: &[&str], program: &[&str]) -> (Ran, Recording) {
    let place = Folder::new();
    let file = place.join("recorded.gwr");
    let monitor = format!("--monitor={}", file.display());
    let words = [&["-n", "2", &monitor], options, &["--"], program].concat();
    let ran = run(&mut whole().run(folder, &words), LIMIT);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    (ran, recording(&file))
}

/// The rows of a node, with stretches expanded.
fn rows(recording: &Recording, node: u16) -> impl Iterator<Item = TransactionRow> {
    let of_intervals = recording.intervals.iter().filter(move |(from, _)| *from == node);
    let of_stretches = recording.stretches.iter().filter(move |(from, _)| *from == node);
    let parts = of_stretches.flat_map(|(_, it)| &it.stretches).flat_map(Stretch::rows);
    of_intervals.flat_map(|(_, interval)| &interval.rows).copied().chain(parts)
}

/// How many transactions of these kinds a node has recorded.
fn count(recording: &Recording, node: u16, kinds: &str) -> u64 {
    let kinds: Kinds = kinds.parse().unwrap();
    rows(recording, node).filter(|row| kinds.contains(row.kind)).map(|row| u64::from(row.count)).sum()
}

fn assert_is_whole(recording: &Recording) {
    assert_eq!((recording.cut.as_ref(), recording.unknown), (None, 0));
    assert_eq!(recording.started.len(), 2);
    assert_eq!(recording.ended.len(), 2);
    assert!(recording.ended.iter().all(|(_, end)| end.lost == 0));
}

#[test]
fn a_number_that_is_written_here_and_read_there_is_fetched_each_time() {
    let folder = Folder::new();
    folder.compile("turns");
    for consistency in ["rc", "sc"] {
        for fabric in ["shm", "tcp"] {
            let options = ["--consistency", consistency, "--fabric", fabric];
            let (ran, recording) = record(&folder, &options, &["./turns", "x"]);
            assert_is_whole(&recording);
            assert_eq!((&recording.run.consistency[..], &recording.run.fabric[..]), (consistency, fabric));
            let line = ran.output.lines().nth(1).unwrap();
            let addresses: Vec<u64> =
                line.split(' ').map(|word| u64::from_str_radix(&word[2..], 16).unwrap()).collect();
            let (number, look) = (addresses[0], addresses[1]);
            let reads: Vec<TransactionRow> = rows(&recording, 1)
                .filter(|row| row.unit == 2 && row.address == number / 4 * 4 && row.kind.is_fetch())
                .collect();
            let read = |kind| {
                reads.iter().filter(|row| row.kind == kind).map(|row| u64::from(row.count)).sum::<u64>()
            };
            assert_eq!((read(Kind::ColdRead), read(Kind::Read)), (1, TURNS - 1), "{options:?}: {reads:?}");
            for row in reads {
                assert_eq!((row.direction, row.peer, row.thread), (Direction::Out, 0, 2), "{row:?}");
                assert!((look..look + 64).contains(&row.code), "{row:x?}, function at {look:#x}");
                assert_eq!(row.bytes, 4096 * u64::from(row.count));
            }
            // Each time but the last, what was read has been written again.
            let page = number / 4096 * 4096;
            let given_up: u64 = rows(&recording, 1)
                .filter(|row| row.kind == Kind::Invalidation && row.address == page && row.peer == 0)
                .map(|row| u64::from(row.count))
                .sum();
            assert!((TURNS - 1..=TURNS).contains(&given_up), "{options:?}: {given_up}");
            let data = |(_, started): &(u16, gondwana_recording::Started)| {
                let mut segments = started.segments.iter();
                segments
                    .any(|data| data.kind == SegmentKind::Data && (data.start..data.end).contains(&number))
            };
            assert!(recording.started.iter().all(data));
        }
    }
}

/// Records a workload with `--stats`, whose counters must say the same.
#[test]
fn a_recording_agrees_with_the_statistics() {
    let place = Folder::new();
    for consistency in ["rc", "sc"] {
        for program in [&["./sor", "-p", "4"][..], &["./water-nsquared", "-p", "4"]] {
            let native = run(Command::new(program[0]).args(&program[1..]).current_dir(&whole().apps), LIMIT);
            let stats = place.join("stats.json");
            let option = format!("--stats={}", stats.display());
            let (ran, recording) = record(&whole().apps, &["--consistency", consistency, &option], program);
            let result =
                |ran: &Ran| ran.output.lines().find(|line| line.starts_with("result: ")).unwrap().to_owned();
            assert_eq!(result(&ran), result(&native));
            assert_is_whole(&recording);
            let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
            for node in 0..2 {
                let told = |group: &str, name: &str| {
                    stats["nodes"][usize::from(node)][group][name].as_u64().unwrap()
                };
                let contents: u64 = rows(&recording, node)
                    .filter(|row| row.bytes > 0 && (row.kind.is_fetch() || row.kind == Kind::Prefetched))
                    .map(|row| u64::from(row.count))
                    .sum();
                assert_eq!(contents, told("pages", "transfers") + told("pages", "refetches"), "{program:?}");
                assert_eq!(count(&recording, node, "diff"), told("diffs", "sent"), "{program:?}");
                assert_eq!(count(&recording, node, "notice"), told("notices", "received"), "{program:?}");
                assert_eq!(count(&recording, node, "recall"), told("pages", "exclusive_left"), "{program:?}");
                assert_eq!(count(&recording, node, "lock"), told("locks", "remote"), "{program:?}");
                let invalidations = count(&recording, node, "invalidation");
                match consistency {
                    "rc" => assert_eq!(invalidations, told("pages", "invalidations"), "{program:?}"),
                    _ => assert!(invalidations <= told("pages", "invalidations"), "{program:?}"),
                }
                assert_eq!(count(&recording, node, "excess"), 0, "{program:?}");
            }
        }
    }
}

#[test]
fn what_hosts_record_arrives() {
    let folder = Folder::new();
    folder.compile("turns");
    let options = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "sh -c 'exec {command}'"];
    let (ran, recording) = record(&folder, &options, &["./turns"]);
    assert_eq!(ran.output, "4950\n");
    assert_is_whole(&recording);
    assert!(count(&recording, 1, "reads") >= TURNS);
}

#[test]
fn a_run_that_is_killed_leaves_what_was_recorded() {
    let place = Folder::new();
    let file = place.join("killed.gwr");
    let monitor = format!("--monitor={}", file.display());
    let run = Endless::start(&["-n", "2", &monitor]);
    // Until something of both nodes has arrived.
    let waiting = std::time::Instant::now();
    loop {
        let so_far = read(File::open(&file).unwrap());
        if so_far.is_ok_and(|recording| (0..2).all(|node| rows(&recording, node).next().is_some())) {
            break;
        }
        assert!(waiting.elapsed() < LIMIT, "nothing is recorded");
        std::thread::yield_now();
    }
    run.node(1).signal(libc::SIGKILL);
    run.end(Duration::from_secs(10));
    let recording = recording(&file);
    assert_eq!(recording.cut, None);
    assert!(recording.ended.iter().all(|(node, _)| *node != 1));
    assert!(count(&recording, 0, "all") > 0 && count(&recording, 1, "all") > 0);
}

#[test]
fn nodes_that_are_killed_at_once_have_told_what_they_are() {
    let folder = Folder::new();
    folder.compile("dies");
    let file = folder.join("dies.gwr");
    let monitor = format!("--monitor={}", file.display());
    let ran = run(&mut whole().run(&folder, &["-n", "2", &monitor, "--", "./dies"]), LIMIT);
    assert_eq!(ran.errors, "gondwana: node 1 was killed by SIGKILL\n");
    let mut started: Vec<u16> = recording(&file).started.iter().map(|(node, _)| *node).collect();
    started.sort_unstable();
    assert_eq!(started, [0, 1]);
}

#[test]
fn filters_count_on_every_node() {
    let folder = Folder::new();
    folder.compile("turns");
    let options = [
        "--consistency",
        "rc",
        "--monitor-filter",
        "range=data,unit=32,kinds=reads,direction=out,threshold=50",
        "--monitor-filter",
        "range=data,unit=4K,kinds=reads,direction=in",
    ];
    let (ran, recording) = record(&folder, &options, &["./turns", "x"]);
    assert_is_whole(&recording);
    let line = ran.output.lines().nth(1).unwrap();
    let number = u64::from_str_radix(&line.split(' ').next().unwrap()[2..], 16).unwrap();
    let counted = |node: u16, unit: u8| -> u64 {
        let filters =
            recording.banks.iter().filter(|(from, _)| *from == node).flat_map(|(_, bank)| &bank.filters);
        filters
            .filter(|filter| filter.unit == unit && (filter.start..filter.end).contains(&number))
            .flat_map(|filter| {
                let unit = (number - filter.start) >> filter.unit;
                filter.counters.iter().filter(move |counted| u64::from(counted.unit) == unit)
            })
            .map(|counted| counted.count)
            .sum()
    };
    // The other node has come for the page as often as its thread has read it; this one has found it there each time, also the
    // last one, after which nobody has worked on the page.
    assert_eq!((counted(1, 5), counted(0, 5)), (TURNS, 0));
    assert_eq!((counted(1, 12), counted(0, 12)), (0, TURNS));
    let said = format!("gondwana: node 1: 50 transactions at {:#x}\n", number / 32 * 32);
    assert!(ran.errors.contains(&said), "{}", ran.errors);
}

/// All that the program allocates are small blocks, and stacks.
#[test]
fn a_filter_of_the_heap_counts_what_happens_to_small_blocks() {
    let folder = Folder::new();
    folder.compile("tree");
    let filter = "range=heap,kinds=fetches+upgrade,direction=out";
    let options = ["--consistency", "rc", "--monitor-filter", filter];
    let (ran, recording) = record(&folder, &options, &["./tree"]);
    assert_eq!(ran.errors, "");
    assert_is_whole(&recording);
    let kinds: Kinds = "fetches+upgrade".parse().unwrap();
    let is_heap = |row: &TransactionRow| {
        let mut segments = recording.started.iter().flat_map(|(_, started)| &started.segments);
        segments.any(|part| part.kind == SegmentKind::Heap && (part.start..part.end).contains(&row.address))
    };
    let mut small = 0;
    for node in 0..2 {
        let happened: BTreeMap<u64, u64> = rows(&recording, node)
            .filter(|row| kinds.contains(row.kind) && row.direction == Direction::Out)
            .filter(is_heap)
            .fold(BTreeMap::new(), |mut pages, row| {
                *pages.entry(row.address / 4096 * 4096).or_default() += u64::from(row.count);
                pages
            });
        let filters =
            recording.banks.iter().filter(|(from, _)| *from == node).flat_map(|(_, bank)| &bank.filters);
        let counted: BTreeMap<u64, u64> = filters
            .flat_map(|filter| {
                let address = |unit: u32| filter.start + u64::from(unit) * 4096;
                filter.counters.iter().map(move |counted| (address(counted.unit), counted.count))
            })
            .collect();
        assert_eq!(counted, happened);
        let is_node = |page: &u64| {
            recording
                .objects
                .iter()
                .any(|(_, block)| block.bytes == 56 && block.address / 4096 * 4096 == *page)
        };
        small += counted.keys().filter(|page| is_node(page)).count();
    }
    assert!(small > 0);
}

#[test]
fn a_recording_that_refines_itself_begins_with_large_units() {
    let place = Folder::new();
    let file = place.join("auto.gwr");
    let monitor = format!("--monitor=auto:{}", file.display());
    let words = ["-n", "2", &monitor, "--", "./water-nsquared", "-p", "4"];
    let ran = run(&mut whole().run(&whole().apps, &words), LIMIT);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    let recording = recording(&file);
    assert_is_whole(&recording);
    let first = recording.intervals.iter().find(|(node, _)| *node == 1).unwrap();
    assert!(first.1.rows.iter().all(|row| row.unit >= 16), "{:?}", first.1.rows[0]);
}

#[test]
fn what_cannot_be_recorded_is_said_in_a_sentence() {
    let folder = Folder::new();
    folder.compile("turns");
    let refused = |options: &[&str], status: i32, text: &str| {
        let ran = run(&mut whole().run(&folder, &[options, &["--", "./turns"]].concat()), LIMIT);
        assert_eq!(ran.status.unwrap().code(), Some(status), "{}", ran.errors);
        assert!(ran.errors.contains(text) && ran.errors.matches('\n').count() == 1, "{}", ran.errors);
        ran.output
    };
    refused(&["--monitor=/nowhere/a.gwr"], 125, "gondwana: --monitor: /nowhere/a.gwr cannot be written: ");
    refused(&["--monitor-filter", "range=heap"], 2, "--monitor");
    let overlapping =
        ["--monitor", "--monitor-filter", "range=0x1000-0x3000", "--monitor-filter", "range=0x2000-0x4000"];
    refused(&overlapping, 2, "it overlaps the filter of 0x1000-0x3000");
    let many = ["--monitor", "--monitor-filter", "range=0x0-0x10000000,unit=32"];
    refused(&many, 2, "it takes 8388608 counters, and 524288 are free");
    let alone = refused(&["-n", "1", "--monitor"], 0, "a run on one node has no remote accesses to record");
    assert_eq!(alone, "4950\n");
    assert!(!folder.join("turns.gwr").exists());
}

#[test]
fn the_file_is_named_after_the_program_and_the_one_before_is_kept() {
    let folder = Folder::new();
    folder.compile("turns");
    for _ in 0..2 {
        let ran = run(&mut whole().run(&folder, &["-n", "2", "--monitor", "--", "./turns"]), LIMIT);
        assert!(ran.status.unwrap().success(), "{}", ran.errors);
        assert_eq!((&ran.output[..], &ran.errors[..]), ("4950\n", ""));
    }
    for name in ["turns.gwr", "turns.gwr.old"] {
        assert_is_whole(&recording(&folder.join(name)));
    }
}
