//! The functions for C on the nodes of a run: the programs that pass on one computer, unchanged.

mod common;

use common::c_api::{compile, root, sources, succeed};
use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_recording::read;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// The runs of each program: nodes and other options.
const RUNS: [(usize, &[&str]); 5] = [
    (2, &["--consistency", "rc", "--fabric", "shm"]),
    (2, &["--consistency", "sc", "--fabric", "shm"]),
    (4, &["--consistency", "rc", "--fabric", "shm"]),
    (4, &["--consistency", "sc", "--fabric", "shm"]),
    (3, &["--consistency", "rc", "--fabric", "tcp"]),
];

/// Runs a program of a folder on nodes, with no named sets.
fn run_on(folder: &Folder, nodes: usize, options: &[&str], program: &[&str]) -> Ran {
    let nodes = nodes.to_string();
    let options = [&["-n", &nodes], options, &["--"], program].concat();
    let mut command = whole().run(folder, &options);
    run(command.env("XDG_STATE_HOME", folder.join("state")), LIMIT)
}

/// Compiles a program and runs it in all ways: each run must succeed and print the output expected for its number of
/// nodes.
fn passes(source: &Path, expected: impl Fn(usize) -> String) {
    let folder = Folder::new();
    compile("gcc", source, &[], &folder.join("program"));
    for (nodes, options) in RUNS {
        let ran = run_on(&folder, nodes, options, &["./program"]);
        assert_eq!(ran.output, expected(nodes), "{options:?} on {nodes} nodes: {}", ran.errors);
        assert!(ran.status.is_some_and(|status| status.success()), "{options:?}: {}", ran.errors);
    }
}

fn test_passes(name: &str, expected: impl Fn(usize) -> String) {
    passes(&root().join("tests/capi").join(format!("{name}.c")), expected);
}

#[test]
fn every_policy_has_its_pages_at_their_homes() {
    test_passes("policies", |nodes| format!("{nodes} nodes\n"));
}

#[test]
fn threads_are_bound_to_processors_of_their_node() {
    test_passes("binding", |nodes| format!("{nodes} of {nodes} nodes\n"));
}

#[test]
fn cpu_groups_are_the_nodes_of_the_run() {
    test_passes("groups", |nodes| format!("{nodes} groups\n"));
}

#[test]
fn sets_are_combined_written_and_named() {
    test_passes("sets", |_| "sets\n".to_owned());
}

#[test]
fn bad_input_is_refused_as_on_one_computer() {
    test_passes("bad", |_| "refused\n".to_owned());
}

#[test]
fn filters_count_and_recordings_have_names() {
    let folder = Folder::new();
    compile("gcc", &root().join("tests/capi/monitor.c"), &[], &folder.join("program"));
    for (nodes, options) in RUNS {
        let ran = run_on(&folder, nodes, options, &["./program"]);
        assert_eq!(ran.output, "counted\n", "{options:?} on {nodes} nodes: {}", ran.errors);
        assert!(ran.status.is_some_and(|status| status.success()), "{options:?}: {}", ran.errors);
        let recording = read(File::open(folder.join("monitored.gwr")).unwrap()).unwrap();
        assert_eq!((&recording.cut, recording.ended.len()), (&None, nodes));
        let names: Vec<&str> = recording.names.iter().map(|(_, name)| name.name.as_str()).collect();
        assert_eq!(names, ["the first pages"], "{options:?} on {nodes} nodes");
    }
}

/// The output of `nodes`: each node twice, with the same number of pages on each.
fn stripes(nodes: usize) -> String {
    let pages = format!(" {}", 120 / nodes).repeat(nodes);
    (0..2 * nodes).map(|turn| format!("node {}:{pages}\n", turn % nodes)).collect()
}

#[test]
fn what_one_node_makes_others_use_and_free() {
    test_passes("nodes", stripes);
    let folder = Folder::new();
    compile("gcc", &root().join("tests/capi/nodes.c"), &[], &folder.join("program"));
    let native = String::from_utf8(succeed(&mut Command::new(folder.join("program"))).stdout).unwrap();
    assert!(native.starts_with("node 0: "), "{native}");
}

/// The pages are counted a second time at the end of the run, by each node for itself.
#[test]
fn pages_are_at_the_homes_that_were_asked_for() {
    let folder = Folder::new();
    compile("gcc", &root().join("tests/capi/nodes.c"), &[], &folder.join("program"));
    for (nodes, options) in RUNS {
        let options = [options, &["--stats=stats.json"]].concat();
        let ran = run_on(&folder, nodes, &options, &["./program", "keep"]);
        assert_eq!(ran.output, stripes(nodes), "{options:?}: {}", ran.errors);
        let text = std::fs::read_to_string(folder.join("stats.json")).unwrap();
        let stats: Value = serde_json::from_str(&text).unwrap();
        for node in 0..nodes {
            let homes = &stats["nodes"][node]["homes"];
            let found = ["asked", "found", "untouched"].map(|name| homes[name].as_u64());
            // Two blocks of each node are striped over all of them.
            assert_eq!(found, [Some(240), Some(240), Some(0)], "{options:?} on {nodes}: {}", stats["nodes"]);
        }
    }
}

#[test]
fn examples_run_on_nodes() {
    for name in sources("examples") {
        let source = root().join("examples").join(format!("{name}.c"));
        let folder = Folder::new();
        compile("gcc", &source, &[], &folder.join("program"));
        for (nodes, options) in RUNS {
            let ran = run_on(&folder, nodes, options, &["./program"]);
            assert!(ran.status.is_some_and(|status| status.success()), "{name}: {}", ran.errors);
            let of_all = (0..nodes).all(|node| ran.output.contains(&node.to_string()));
            assert!(of_all && ran.errors.is_empty(), "{name} {options:?}: {}{}", ran.output, ran.errors);
            if name == "workers" {
                for node in 0..nodes {
                    let line = format!("node {node}: ran on {node}, memory on {node}, sum ");
                    assert!(ran.output.contains(&line), "{options:?}: {}", ran.output);
                }
            }
        }
    }
}

/// The atomic instructions of the library for C are not the program's.
#[test]
fn programs_that_use_the_library_stay_release_consistent() {
    let folder = Folder::new();
    compile("gcc", &root().join("examples/striped.c"), &[], &folder.join("program"));
    let ran = run_on(&folder, 2, &["--stats=stats.json"], &["./program"]);
    assert!(ran.output.ends_with("12288 numbers, 0 pages elsewhere than asked for\n"), "{}", ran.errors);
    let text = std::fs::read_to_string(folder.join("stats.json")).unwrap();
    let stats: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(stats["consistency"], "rc", "{}", stats["consistency_reason"]);
}
