//! Filters that `--monitor=auto` moves to the hottest areas while the program runs.

mod common;

use common::exchange::Exchange;
use common::whole::{LIMIT, run, whole};
use gondwana_recording::{FilterCounts, Recording, read};
use serde_json::Value;
use std::fs::File;
use std::ops::Range;
use std::process::Command;
use std::time::Instant;

/// Where the heap is: variables are outside.
const HEAP: Range<u64> = gondwana_memory::SPAN_BASE as u64..gondwana_memory::RUNTIME_BASE as u64;

/// The present filters of a run, and their counters.
fn filters_of(exchange: &Exchange) -> Vec<Value> {
    let pid = exchange.pid();
    let ran = run(Command::new(&whole().gondwana).args(["monitor", &pid, "--counters", "--json"]), LIMIT);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    serde_json::from_str::<Value>(&ran.output).unwrap()["filters"].as_array().unwrap().clone()
}

/// Waits until both nodes have counted something in lines of 32 bytes.
fn until_lines_are_counted(exchange: &Exchange) {
    let start = Instant::now();
    loop {
        let filters = filters_of(exchange);
        let counts = |node: u64, filter: &Value| {
            let counters = filter["counters"].as_array().unwrap();
            filter["node"] == node && filter["unit"] == 32 && !counters.is_empty()
        };
        if (0..2).all(|node| filters.iter().any(|filter| counts(node, filter))) {
            return;
        }
        assert!(start.elapsed() < LIMIT, "no filter looks closely: {filters:#?}");
    }
}

fn counted(filter: &FilterCounts) -> u64 {
    filter.counters.iter().map(|counted| counted.count).sum()
}

/// The filters that have moved in a recording of both nodes.
fn recorded(exchange: &Exchange) -> Recording {
    let recording = read(File::open(exchange.file("exchange.gwr")).unwrap()).unwrap();
    assert_eq!((recording.cut.as_ref(), recording.ended.len()), (None, 2));
    recording
}

#[test]
fn filters_close_in_on_what_is_hot_and_the_report_names_it() {
    for options in
        [&["-n", "2"][..], &["-n", "2", "--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"]]
    {
        let mut exchange = Exchange::start(&[options, &["--monitor=auto"]].concat());
        until_lines_are_counted(&exchange);
        exchange.end();
        let recording = recorded(&exchange);
        assert_eq!(recording.banks, [], "nobody has asked for a filter");
        for node in 0..2 {
            let mut own =
                recording.watched.iter().filter(|(from, _)| *from == node).map(|(_, watched)| watched);
            let first = own.clone().find(|watched| counted(&watched.filter) > 0).unwrap();
            assert!(first.filter.unit >= 12, "it begins with large units: {first:?}");
            let closest =
                own.find(|watched| watched.filter.unit == 5 && counted(&watched.filter) > 0).unwrap();
            assert!(closest.begin > first.begin, "{closest:?}");
        }
        let file = exchange.file("exchange.gwr");
        let ran = run(Command::new(&whole().gondwana).arg("report").arg(&file), LIMIT);
        let table = ran.output.split("\n\n").find(|part| part.starts_with("filter that moved here")).unwrap();
        // Which of the two is hottest depends on who finds whose page writable.
        let names = |line: &str| {
            line.contains(" 32 B ") && ["exchanged[", "block"].iter().any(|name| line.contains(name))
        };
        assert!(table.lines().any(names), "{table}");
        let ran = run(Command::new(&whole().gondwana).arg("report").arg(&file).arg("--json"), LIMIT);
        let json: Value = serde_json::from_str(&ran.output).unwrap();
        assert!(json["filters"].as_array().unwrap().iter().all(|filter| filter["own"] == true));
    }
}

#[test]
fn filters_that_somebody_has_asked_for_stay() {
    let filter = "range=data,kinds=fetches+upgrade,direction=out,unit=4K";
    let mut exchange = Exchange::start(&["-n", "2", "--monitor=auto", "--monitor-filter", filter]);
    until_lines_are_counted(&exchange);
    let asked: Vec<Value> = filters_of(&exchange)
        .into_iter()
        .filter(|filter| !HEAP.contains(&filter["start"].as_u64().unwrap()))
        .collect();
    assert!(!asked.is_empty() && asked.iter().all(|filter| filter["unit"] == 4096), "{asked:#?}");
    exchange.end();
    let recording = recorded(&exchange);
    let filters = recording.banks.iter().flat_map(|(_, bank)| &bank.filters);
    assert_eq!(filters.clone().count(), asked.len());
    assert!(filters.clone().map(counted).sum::<u64>() > 0);
    for (_, watched) in &recording.watched {
        let overlaps =
            |asked: &FilterCounts| asked.start < watched.filter.end && watched.filter.start < asked.end;
        // The first filters were removed before the program began.
        assert!(watched.filter.counters.is_empty() || !filters.clone().any(overlaps), "{watched:?}");
    }
}
