use super::super::MemoryOptions;
use super::super::measure::Places;
use super::super::panels::panels;
use super::super::ratios::tests::measured;
use super::*;
use gondwana_topology::{Bytes, Machine, NodeId};
use std::collections::BTreeMap;

fn setup(cluster: bool) -> MemorySetup {
    let options = MemoryOptions {
        cluster,
        nodes: None,
        size: Some(Bytes(1 << 20)),
        threads: None,
        json: None,
        svg: None,
    };
    MemorySetup::new(&options, Machine::uniform(2, 1, Bytes(1 << 30))).unwrap()
}

/// Reads of near and far memory and a chase, and a write that failed.
fn results(places: bool) -> MemoryResults {
    let mut results = MemoryResults::default();
    let cases = [
        measured(Kernel::Read, 1, 0, 0, 200_000, 100_000),
        measured(Kernel::Read, 1, 0, 1, 1_000_000, 250_000),
        measured(Kernel::Chase, 1, 0, 0, 200_000_000, 100_000_000),
    ];
    for (case, mut measured) in cases {
        let pages = Some(BTreeMap::from([(case.memory, 245)]));
        measured.places = places.then(|| Places { processors: "0".parse().unwrap(), pages });
        results.add(case, Ok(measured));
    }
    let failed = MemoryCase { kernel: Kernel::Write, threads: 1, node: NodeId(1), memory: NodeId(0) };
    results.add(failed, Err("node 0 is full".to_owned()));
    results
}

#[test]
fn the_table_of_a_computer_says_where_pages_were_found() {
    let (setup, results) = (setup(false), results(true));
    let table = table(&setup, &results, &panels(&results, false));
    let expected = "\
Memory of 2 nodes of this computer, 1MiB to work on

test     threads  on node  memory on    speed  time/local  scaling  pages asked  found there
BwMemRd        1        0          0  10 GB/s                               245          245
BwMemRd        1        0          1   4 GB/s         2.5                   245          245
latency        1        0          0   100 ns                               245          245

Remote memory, one thread: time, local = 1
         remote memory
BwMemCp
BwMemRd            2.5
BwMemWr
latency

BwMemWr, 1 thread on node 1, memory on node 0: not measured: node 0 is full
";
    assert_eq!(table, expected);
}

#[test]
fn the_table_of_a_run_tells_what_coherence_takes() {
    let (setup, results) = (setup(true), results(false));
    let table = table(&setup, &results, &panels(&results, true));
    let lines: Vec<String> =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "Memory of 2 nodes of a run, 1MiB to work on");
    assert_eq!(lines[2], "test threads on node memory on with coherence time/local speed time/local scaling");
    assert_eq!(lines[3], "BwMemRd 1 0 0 5 GB/s 2 10 GB/s");
    assert_eq!(lines[4], "BwMemRd 1 0 1 1 GB/s 10 4 GB/s 2.5");
    assert!(lines.contains(&"including coherence after coherence".to_owned()), "{table}");
}

#[test]
fn json_has_what_was_measured_and_what_it_means() {
    let (setup, results) = (setup(false), results(true));
    let json = json(json!({}), &setup, &results, &panels(&results, false));
    let case = &json["cases"][1];
    assert_eq!(case["test"], "BwMemRd");
    assert_eq!((&case["node"], &case["memory"]), (&json!(0), &json!(1)));
    assert_eq!(case["pass"], json!({ "bytes": 1_000_000 }));
    assert_eq!(case["nanoseconds"]["min"], 250_000);
    assert_eq!(case["times_local"], 2.5);
    assert_eq!(case["asked"]["pages"], json!({ "1": 245 }));
    assert_eq!(case["found"], json!({ "processors": "0", "pages": { "1": 245 } }));
    assert_eq!(json["cases"][2]["pass"], json!({ "accesses": 1_000_000 }));
    assert_eq!(json["cases"][3]["not_measured"], "node 0 is full");
    assert_eq!(json["figures"][0]["series"][0]["values"][1]["median"], 2.5);
    assert_eq!(json["working_set"], 1 << 20);
}
