//! `gondwana bench memory` on this computer and on nodes, with working sets that take no time.

mod common;

use common::folder::Folder;
use common::whole::{Ran, run, whole};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// All cases together; each takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(120);

fn bench(folder: &Folder, options: &str) -> Ran {
    let mut command = Command::new(&whole().gondwana);
    command.args(["bench", "memory"]).args(options.split_whitespace()).current_dir(&**folder);
    run(&mut command, LIMIT)
}

/// What the command writes: the table, the JSON, and the titles of the charts, which are in its SVG.
fn measured(options: &str) -> (String, Value, Vec<String>) {
    let folder = Folder::new();
    let ran = bench(&folder, &format!("{options} --json out.json --svg out.svg"));
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    let json = serde_json::from_str(&fs::read_to_string(folder.join("out.json")).unwrap()).unwrap();
    let svg = fs::read_to_string(folder.join("out.svg")).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let titles = document.descendants().filter(|node| node.attribute("class") == Some("panel"));
    (ran.output, json, titles.map(|title| title.text().unwrap().to_owned()).collect())
}

fn cases(json: &Value) -> &[Value] {
    json["cases"].as_array().unwrap()
}

#[test]
fn local_memory_of_this_computer_is_measured_where_it_was_asked_for() {
    let (table, json, _) = measured("--size 300KiB --threads 1");
    let local: Vec<&Value> = cases(&json).iter().filter(|case| case["node"] == case["memory"]).collect();
    let tests: Vec<&str> = local.iter().take(4).map(|case| case["test"].as_str().unwrap()).collect();
    assert_eq!(tests, ["BwMemCp", "BwMemRd", "BwMemWr", "latency"]);
    for case in cases(&json) {
        assert!(case["nanoseconds"]["min"].as_u64().unwrap() > 0, "{case}");
        assert_eq!(case["asked"]["pages"], case["found"]["pages"], "{case}");
    }
    let node = local[0]["node"].to_string();
    assert_eq!(local[0]["pass"], json!({ "bytes": 75 * 4096 }));
    assert_eq!(local[0]["found"]["pages"], json!({ node: 150 }));
    assert_eq!(local[3]["pass"], json!({ "accesses": 75 }));
    assert!(table.contains("\nBwMemCp "), "{table}");
}

#[test]
fn every_pair_of_nodes_of_a_run_is_measured_with_and_without_coherence() {
    let (table, json, titles) = measured("--cluster -n 2 --threads 2 --size 128KiB");
    let mut pairs: Vec<(u64, u64)> = cases(&json)
        .iter()
        .map(|case| (case["node"].as_u64().unwrap(), case["memory"].as_u64().unwrap()))
        .collect();
    pairs.sort_unstable();
    // Three tests by one thread and by two, and latency.
    let expected: Vec<_> = [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().flat_map(|pair| [pair; 7]).collect();
    assert_eq!(pairs, expected);
    for case in cases(&json) {
        assert!(case["including_coherence"]["times_local"].as_f64().unwrap() > 0.0, "{case}");
        assert_eq!(case["times_local"].is_number(), case["node"] != case["memory"], "{case}");
        assert_eq!(case["scaling"].is_number(), case["threads"] == 2, "{case}");
    }
    let expected = [
        "Remote memory, one thread",
        "Local memory, several threads of a node",
        "Remote memory, all threads of a node",
    ];
    assert_eq!(titles, expected);
    assert!(expected.iter().all(|title| table.contains(&format!("\n{title}: "))), "{table}");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line_and_leaves_no_file() {
    for (options, status, sentence) in [
        ("--nodes 200", 2, "--nodes: this computer has no node 200 (it has "),
        ("--nodes all", 2, "--nodes: "),
        ("--cluster -n 1", 2, "--nodes: '1' is no number of nodes from 2 to 256"),
        ("--size 1.5GiB", 2, "is no amount of memory such as"),
        ("--size 1KiB", 2, "--size: 1KiB is too little: a page for each thread takes "),
        ("--size 900TiB", 2, "--size: 900TiB is too much: "),
        ("--threads 0", 2, "invalid value '0' for '--threads <THREADS>'"),
        ("--threads 4096", 2, "--threads: each thread has a processor for itself"),
        ("--svg no/such/folder", 125, "--svg: no/such/folder cannot be written"),
    ] {
        let folder = Folder::new();
        let ran = bench(&folder, &format!("--json out.json {options}"));
        assert_eq!(ran.status.and_then(|ended| ended.code()), Some(status), "{options}: {}", ran.errors);
        assert!(
            ran.errors.contains(sentence) && ran.errors.lines().count() == 1,
            "{options}: {}",
            ran.errors
        );
        assert!(ran.output.is_empty() && !folder.join("out.json").exists(), "{options}");
    }
}
