//! `gondwana bench monitor` with few pairs of short runs.

mod common;

use common::folder::Folder;
use common::whole::{Ran, run, whole};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// A few runs of some seconds each, on a computer with ten times as many runnable threads as processors.
const LIMIT: Duration = Duration::from_secs(300);

fn bench(folder: &Folder, options: &str) -> Ran {
    let mut command = Command::new(&whole().gondwana);
    let apps = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps");
    command.args(["bench", "monitor", "--apps", apps]).args(options.split_whitespace());
    run(command.current_dir(&**folder), LIMIT)
}

#[test]
fn runs_with_the_monitor_are_compared_with_runs_without_it() {
    let folder = Folder::new();
    let ran = bench(&folder, "--only release --only alloc --only matmul --pairs 2 --json out.json");
    assert!(ran.status.is_some_and(|status| status.success()), "{}{}", ran.output, ran.errors);
    assert!(ran.output.starts_with("2 nodes, 2 pairs of runs, "), "{}", ran.output);
    let json: Value = serde_json::from_str(&fs::read_to_string(folder.join("out.json")).unwrap()).unwrap();
    let cases = json["cases"].as_array().unwrap();
    let names: Vec<&str> = cases.iter().map(|case| case["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["release-words", "allocation", "matmul"]);
    for case in cases {
        let [without, with] =
            ["without", "with"].map(|way| case["nanoseconds"][way]["min"].as_f64().unwrap());
        assert!((case["ratio_of_least"].as_f64().unwrap() - with / without).abs() < 1e-9, "{case}");
        assert_eq!(case["confidence"]["interval"], Value::Null, "two pairs say too little: {case}");
        assert!(case["noise"].as_f64().unwrap() >= 0.0, "{case}");
        assert!(case["recording_bytes"].as_u64().unwrap() > 0, "{case}");
        // Only whole programs have verdicts; their values depend on the load of the computer.
        assert_eq!(case["verdict"].is_string(), case["name"] == "matmul", "{case}");
    }
    // A thousand pages are read and released ten times at least; half of a matrix comes to the other node.
    let transactions = |case: usize| cases[case]["transactions"].as_u64().unwrap();
    assert!(transactions(0) >= 20_000, "{}", cases[0]);
    assert!(transactions(2) >= 1_024, "{}", cases[2]);
    let counted = cases[2]["counted"].as_f64().unwrap();
    assert!(counted > 0.0 && counted < 1.0, "{}", cases[2]);
    for what in ["note_new", "note_again", "write_row", "count_with_filters"] {
        assert!(json["nanoseconds_to"][what].as_f64().unwrap() > 0.0, "{what}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line_and_leaves_no_file() {
    for (options, status, sentence) in [
        ("-n 1", 2, "invalid value '1' for '--nodes <NODES>'"),
        ("--pairs 0", 2, "invalid value '0' for '--pairs <PAIRS>'"),
        ("--only speed", 2, "no figure begins with speed; there are read-miss, write-miss"),
        ("--json no/such/folder", 125, "--json: no/such/folder cannot be written"),
    ] {
        let folder = Folder::new();
        let ran =
            bench(&folder, &format!("--json out.json {options}").replace("--json out.json --json", "--json"));
        assert_eq!(ran.status.and_then(|ended| ended.code()), Some(status), "{options}: {}", ran.errors);
        let one_line = ran.errors.lines().count() == 1;
        assert!(ran.errors.contains(sentence) && one_line, "{options}: {}", ran.errors);
        assert!(ran.output.is_empty() && !folder.join("out.json").exists(), "{options}");
    }
}
