//! `gondwana report`: output for complete and incomplete recordings.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run};
use gondwana_monitor::{Direction, Kind};
use gondwana_recording::{
    BlockRecord, End, ImageRecord, Interval, RunRecord, SegmentKind, SegmentRecord, SiteRecord, Started,
    TransactionRow, encode,
};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

const HEAP: u64 = 0x10_0000_0000;

fn row(kind: Kind, address: u64, peer: u16, count: u32) -> TransactionRow {
    TransactionRow {
        address,
        unit: 5,
        kind,
        direction: Direction::Out,
        peer,
        thread: 1,
        code: 0x40_1234,
        count,
        bytes: if kind.is_fetch() { 4096 * u64::from(count) } else { 12 },
    }
}

/// The file of a run of two nodes, of which the second was killed.
fn recorded() -> Vec<u8> {
    let run = RunRecord {
        executable: "/nowhere/program".into(),
        command: vec!["./program".into(), "64".into()],
        nodes: 2,
        consistency: "rc".into(),
        fabric: "shm".into(),
        page_bytes: 4096,
        ..RunRecord::default()
    };
    let heap = SegmentRecord { start: HEAP, end: HEAP + (1 << 30), kind: SegmentKind::Heap };
    let image = ImageRecord {
        path: "/nowhere/program".into(),
        base: 0,
        start: 0x40_0000,
        end: 0x50_0000,
        build_id: vec![1],
    };
    let started = Started { host: "alpha".into(), process: 7, segments: vec![heap], images: vec![image] };
    let block = |address, site| BlockRecord { address, bytes: 8192, site, thread: 0 };
    let site = |number, address| SiteRecord { number, stack: vec![address] };
    let rows = vec![
        row(Kind::ColdRead, HEAP, 0, 2),
        row(Kind::Read, HEAP + 4096, 0, 30),
        row(Kind::ExcessRead, HEAP + 8192, 0, 4),
        row(Kind::LockHandOff, HEAP + 8192 + 64, 0, 9),
    ];
    let late = vec![row(Kind::Upgrade, HEAP + 4096, 1, 30)];
    [
        gondwana_recording::FILE_HEADER.to_vec(),
        encode(gondwana_recording::LAUNCHER, &run),
        encode(0, &started),
        encode(1, &started),
        encode(0, &vec![site(1, 0x40_0100), site(2, 0x40_0200)]),
        encode(0, &vec![block(HEAP, 1), block(HEAP + 8192, 2)]),
        encode(1, &Interval { begin: 0, end: 250_000_000, rows }),
        encode(0, &Interval { begin: 0, end: 1_500_000_000, rows: late }),
        encode(0, &End { time: 1_500_000_000, messages: 40, bytes: 99, lost: 0 }),
    ]
    .concat()
}

/// The command's output for a recording.
fn report(recording: &[u8], options: &[&str]) -> Ran {
    let folder = Folder::new();
    fs::write(folder.join("run.gwr"), recording).unwrap();
    run(command(&folder).args(options).arg("run.gwr"), LIMIT)
}

fn command(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gondwana"));
    command.arg("report").current_dir(&**folder);
    command
}

fn printed(recording: &[u8], options: &[&str]) -> String {
    let ran = report(recording, options);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    ran.output
}

fn refused(recording: &[u8], options: &[&str]) -> String {
    let ran = report(recording, options);
    assert!(!ran.status.unwrap().success() && ran.output.is_empty(), "{}", ran.output);
    assert_eq!(ran.errors.lines().count(), 1, "{}", ran.errors);
    ran.errors
}

const TABLE: &str = "\
./program 64: 2 nodes, rc over shm, 1.5 s
36 requests, 144.0 KiB moved; 36 pages were waited for, 4 of them unchanged
Note: The recording has no end of node 1: what happened there last may be missing.
Note: No lines of the source are known: compile with -g to see them.
Note: /nowhere/program is gone: what is in it has no names.

data area  sharing            node 0  node 1  requests
0x400100   producer-consumer       0      32        32
0x400200   read-only               0       4         4

data area  reads  writes  excess  ahead  upgrades  diffs  notices      moved
0x400100      32       0       0      0        30      0        0  128.0 KiB
0x400200       4       0       4      0         0      0        0     16 KiB

0x400100, 8 KiB: fetched for reads by node 1, written by node 0
        32 reads       30 writes  by 0x401234
0x400200, 8 KiB: fetched for reads by node 1, written by no node
         4 reads        0 writes  by 0x401234

lock                address  passed between nodes
0x400200+0x40  0x1000002040                     9

from, to  node 0   node 1
node 0            144 KiB
node 1       0 B
";

#[test]
fn the_table_shows_areas_and_nodes() {
    let text = printed(&recorded(), &[]);
    assert_eq!(text, TABLE);
}

#[test]
fn one_area_can_be_asked_for() {
    let text = printed(&recorded(), &["--area", "0x400200"]);
    assert!(text.contains("0x400200") && !text.contains("0x400100") && !text.contains("from, to"), "{text}");
    let text = refused(&recorded(), &["--area", "bodies"]);
    assert!(
        text.contains("no data area has the name \"bodies\": the hottest are 0x400100, 0x400200"),
        "{text}"
    );
    let text = printed(&recorded(), &["--top", "1"]);
    assert!(text.contains("1 more data areas are not shown (--top 2)"), "{text}");
}

#[test]
fn programs_read_json_and_lines() {
    let json: Value = serde_json::from_str(&printed(&recorded(), &["--json"])).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["areas"][0]["name"], "0x400100");
    assert_eq!(json["areas"][0]["pattern"], "producer-consumer");
    assert_eq!(json["flows"][0][1]["pages"], 36);
    assert_eq!(json["nodes"][0]["host"], "alpha");
    let csv = printed(&recorded(), &["--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].starts_with("area,pattern,node,reads,writes,"), "{csv}");
    assert!(lines.contains(&"0x400100,producer-consumer,1,32,0,2,0,0,0,0,0,0,0,131072,0,8192"), "{csv}");
    assert!(refused(&recorded(), &["--json", "--csv"]).contains("--csv"));
}

#[test]
fn a_cut_recording_is_reported_as_far_as_it_goes() {
    let whole = recorded();
    let text = printed(&whole[..whole.len() - 3], &[]);
    assert!(text.contains("Note: The recording is cut: the file ends within a chunk"), "{text}");
    assert!(text.contains("0x400100"), "{text}");
}

#[test]
fn what_is_no_recording_is_refused_in_one_sentence() {
    assert!(refused(b"#!/bin/sh\necho a program\n", &[]).contains("no recording of a run with --monitor"));
    assert!(refused(b"", &[]).contains("no recording of a run with --monitor"));
    assert!(refused(&gondwana_recording::FILE_HEADER, &[]).contains("before it says what was run"));
    let mut other = recorded();
    other[13] = 9;
    assert!(refused(&other, &[]).contains("has format 9"));
    let folder = Folder::new();
    let ran = run(command(&folder).arg("missing.gwr"), LIMIT);
    assert!(ran.errors.contains("missing.gwr cannot be read: No such file"), "{}", ran.errors);
}

/// As `gondwana report FILE | head -1` does.
#[test]
fn readers_may_go_away() {
    let folder = Folder::new();
    fs::write(folder.join("run.gwr"), recorded()).unwrap();
    let mut child = command(&folder)
        .args(["--json", "run.gwr"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success() && errors.is_empty(), "{errors}");
}

#[test]
fn the_page_is_a_file_of_its_own() {
    let folder = Folder::new();
    fs::write(folder.join("run.gwr"), recorded()).unwrap();
    for (option, file) in [("--html", "run.html"), ("--html=other.html", "other.html")] {
        let ran = run(command(&folder).args([option, "run.gwr"]), LIMIT);
        assert_eq!((ran.output, ran.errors), (format!("{file}\n"), String::new()));
        let page = fs::read_to_string(folder.join(file)).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("./program 64"));
    }
    let ran = run(command(&folder).args(["--html=run.gwr", "run.gwr"]), LIMIT);
    assert!(ran.errors.contains("the page would take the place of the recording"), "{}", ran.errors);
    assert_eq!(fs::read(folder.join("run.gwr")).unwrap(), recorded());
}
