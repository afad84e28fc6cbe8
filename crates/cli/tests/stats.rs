//! `--stats` of real runs.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use serde_json::Value;
use std::path::Path;

/// Runs a program with `--stats`; returns the table and the JSON file.
fn statistics(folder: &Path, nodes: &str, program: &[&str]) -> (String, Value) {
    let place = Folder::new();
    let file = place.join("stats.json");
    let option = format!("--stats={}", file.display());
    let ran = run(&mut whole().run(folder, &[&["-n", nodes, &option], program].concat()), LIMIT);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    (ran.errors, serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap())
}

#[test]
fn statistics_tell_what_crossed() {
    let (table, report) = statistics(&whole().apps, "4", &["--common-after", "0", "--", "./sor", "-p", "4"]);
    let total = &report["total"];
    // Four threads on four nodes exchange rows and meet at barriers.
    for (group, counter) in
        [("faults", "read"), ("faults", "write"), ("pages", "transfers"), ("threads", "barrier_arrivals")]
    {
        assert!(total[group][counter].as_u64().unwrap() > 0, "{group} {counter} in {report:#}");
        let nodes = report["nodes"].as_array().unwrap();
        let sum: u64 = nodes.iter().map(|node| node[group][counter].as_u64().unwrap()).sum();
        assert_eq!(total[group][counter], sum, "{group} {counter}");
    }
    assert!(table.contains("pages transfers") && !table.contains("messages heap"), "{table}");
    assert_every_name_is_snake_case(total);
}

fn assert_every_name_is_snake_case(value: &Value) {
    for (name, member) in value.as_object().into_iter().flatten() {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert_every_name_is_snake_case(member);
    }
}

/// Nodes of one computer use pages and mutexes in one place that they touch, or take from each other; unless they are told not to, or
/// are observed.
#[test]
fn pages_and_mutexes_become_common() {
    let common = |options: &[&str]| {
        let program = ["./conform/common_pages", "-p", "3"];
        let (_, report) = statistics(&whole().programs, "3", &[options, &["--"], &program].concat());
        let count = |group: &str, name: &str| report["total"][group][name].as_u64().unwrap();
        (count("pages", "became_common"), count("locks", "common"))
    };
    for consistency in ["rc", "sc"] {
        for after in ["1", "touch"] {
            let (pages, mutexes) = common(&["--consistency", consistency, "--common-after", after]);
            let counted = format!("{consistency} {after}: {pages} pages, {mutexes} mutexes");
            assert!(pages >= 3 * 24 && mutexes >= 24, "{counted}");
        }
    }
    assert_eq!(common(&["--common-after", "0"]), (0, 0));
    assert_eq!(common(&["--fabric", "tcp"]), (0, 0));
    assert_eq!(common(&["--protocol", "csm-invalidate"]), (0, 0));
    let place = Folder::new();
    assert_eq!(common(&[&format!("--monitor={}", place.join("run.gwr").display())]), (0, 0));
}

#[test]
fn the_time_of_threads_is_split() {
    let folder = Folder::new();
    folder.compile("phases");
    // Main on node 0 waits for a thread on node 1 that sleeps for a second: that is the program's own time. After
    // the end of that thread main sleeps for a second.
    let (_, report) = statistics(&folder, "2", &["./phases"]);
    let time = |node: usize, activity: &str| report["nodes"][node]["time_us"][activity].as_u64().unwrap();
    let seconds = report["seconds"].as_f64().unwrap() * 1e6;
    for (node, activity, least) in [(0, "user", 1_000_000), (0, "waiting", 500_000), (1, "user", 1_000_000)] {
        assert!(time(node, activity) >= least, "{activity} of node {node} in {report:#}");
    }
    let life =
        |node| ["user", "protocol", "waiting", "message"].map(|part| time(node, part)).iter().sum::<u64>();
    assert!((life(0) as f64) < seconds, "main is one thread: {report:#}");
    assert!((life(1) as f64) < seconds - 1e6, "the thread has ended before main sleeps: {report:#}");
}

#[test]
fn locks_are_local_where_the_token_rests() {
    let folder = Folder::new();
    folder.compile("phases");
    // The thread on node 1 locks the same mutex a hundred times.
    let (_, report) = statistics(&folder, "2", &["./phases"]);
    let locks = &report["nodes"][1]["locks"];
    let (local, remote) = (locks["local"].as_u64().unwrap(), locks["remote"].as_u64().unwrap());
    assert!(remote <= 1 && local + remote >= 100, "{report:#}");
}
