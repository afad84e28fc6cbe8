//! What OpenMP programs are told and shown of the run that they are in, and what ends it.

mod common;

use common::c_api::root;
use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use std::process::Command;

const SHOWN: [(&str, &str); 4] = [
    ("OMP_PLACES", "threads"),
    ("SHOW_PLACES", "1"),
    ("OMP_DISPLAY_ENV", "verbose"),
    ("OMP_DISPLAY_AFFINITY", "true"),
];

#[test]
fn nodes_are_places_and_settings_are_shown_once() {
    let programs = &whole().programs;
    let words = ["-n", "3", "-t", "2", "--", "./openmp/places", "-p", "6"];
    let ran = run(whole().run(programs, &words).envs(SHOWN), LIMIT);
    assert_eq!(ran.output, "3 places, way 1\nPASS places\n", "{}", ran.errors);
    let times = |text: &str| ran.errors.matches(text).count();
    assert_eq!(times("OPENMP DISPLAY ENVIRONMENT BEGIN"), 1, "{}", ran.errors);
    assert_eq!(times("  OMP_PLACES = '{0:2},{2:2},{4:2}'\n"), 1, "{}", ran.errors);
    assert_eq!(times("  OMP_PROC_BIND = 'TRUE'\n"), 1, "{}", ran.errors);
    // Each thread of the first region, two on each node.
    let usual = ran.errors.lines().filter(|line| line.starts_with("level 1 thread 0x"));
    let mut shown: Vec<&str> = usual.filter_map(|line| line.split(" affinity ").nth(1)).collect();
    shown.sort_unstable();
    assert_eq!(shown, ["0-1", "0-1", "2-3", "2-3", "4-5", "4-5"], "{}", ran.errors);
}

#[test]
fn without_a_wish_there_are_no_places_and_nothing_is_shown() {
    let ran = run(&mut whole().run(&whole().programs, &["-n", "2", "--", "./openmp/places"]), LIMIT);
    assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("PASS places\n", ""));
}

/// A worker thread's variables are its node's, and threads of others copy them.
#[test]
fn threads_copy_from_the_thread_that_begins_their_region() {
    let folder = Folder::new();
    let source = root().join("crates/cli/tests/programs/nested_copyin.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fopenmp", "-o"]).arg(folder.join("nested")).arg(source);
    assert!(gcc.status().unwrap().success());
    for (nodes, fabric) in [("1", "shm"), ("2", "shm"), ("2", "tcp"), ("3", "tcp")] {
        let ran = run(&mut whole().run(&folder, &["-n", nodes, "--fabric", fabric, "--", "./nested"]), LIMIT);
        assert_eq!(ran.output, "6\n", "{}", ran.errors);
    }
}
