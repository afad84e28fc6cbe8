//! Areas and patterns of real runs: programs that share memory in known ways are recorded, and the report is compared
//! with their sources.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The report of a run.
struct Report(Value);

impl Report {
    /// Records a program on nodes and reads the report.
    fn of(program: &str, nodes: &str, consistency: &str) -> Self {
        let folder = Folder::new();
        folder.compile(program);
        let program = format!("./{program}");
        let native = run(Command::new(&program).current_dir(&*folder), LIMIT);
        let options = ["-n", nodes, "--consistency", consistency, "--monitor=run.gwr", "--", &program];
        let ran = run(&mut whole().run(&folder, &options), LIMIT);
        assert!(ran.status.unwrap().success(), "{}", ran.errors);
        assert_eq!(ran.output, native.output);
        let mut report = Command::new(&whole().gondwana);
        let json = run(report.args(["report", "--json", "run.gwr"]).current_dir(&*folder), LIMIT);
        let report = Self(serde_json::from_str(&json.output).expect(&json.errors));
        assert_eq!(report.0["notes"], Value::Array(vec![]));
        report
    }

    fn area(&self, name: &str) -> &Value {
        let areas = self.0["areas"].as_array().unwrap();
        let names = || areas.iter().map(|area| &area["name"]).collect::<Vec<_>>();
        areas.iter().find(|area| area["name"] == name).unwrap_or_else(|| panic!("no {name} in {:?}", names()))
    }

    #[track_caller]
    fn is(&self, name: &str, patterns: &[&str]) {
        let area = self.area(name);
        assert!(patterns.iter().any(|pattern| area["pattern"] == *pattern), "{area:#}");
    }

    /// Who uses which part of an area's falsely shared pages, as `node name`.
    fn sides(&self, name: &str) -> Vec<String> {
        let pages = self.area(name)["falsely_shared"].as_array().unwrap();
        let writers = pages.iter().flat_map(|page| page["writers"].as_array().unwrap());
        writers.map(|writer| format!("{} {}", writer["node"], writer["name"].as_str().unwrap())).collect()
    }
}

fn shares(nodes: &str, consistency: &str) {
    let report = Report::of("shares", nodes, consistency);
    report.is("counters", &["falsely-shared"]);
    report.is("bodies", &["falsely-shared"]);
    report.is("state", &["falsely-shared"]);
    report.is("record", &["migratory"]);
    report.is("grid", &["producer-consumer"]);
    report.is("table", &["read-only"]);
    // Each node uses its own, until main reads all of them, one after the other.
    report.is("padded", &["private", "producer-consumer", "migratory"]);
    assert_eq!(report.sides("padded"), [""; 0]);

    let sides = report.sides("counters");
    assert!(
        (0..4).all(|index| sides.iter().any(|side| side.ends_with(&format!(" counters[{index}]")))),
        "{sides:?}"
    );
    let fields = |name: &str| {
        let fields = report.area(name)["fields"].as_array().unwrap().iter();
        fields.map(|field| field["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(
        [".hits", ".limit"].iter().all(|field| fields("state").contains(&field.to_string())),
        "{:?}",
        fields("state")
    );
    assert!(
        ["[].mass", "[].moves"].iter().all(|field| fields("bodies").contains(&field.to_string())),
        "{:?}",
        fields("bodies")
    );
    // On two processors a node can keep the page over many rounds: then another place comes first.
    let places = report.area("record")["places"].as_array().unwrap();
    let is_right = |place: &Value| {
        place["function"] == "add_to_record" && place["text"].as_str().unwrap().starts_with("shares.c:4")
    };
    assert!(places.iter().any(is_right), "{places:?}");
    assert_eq!(report.0["locks"][0]["name"], "mutex");
    let advice = report.0["advice"].as_array().unwrap();
    assert!(
        advice.iter().any(|advice| advice["area"] == "counters" && advice["kind"] == "pad"),
        "{advice:?}"
    );
    assert!(
        advice.iter().any(|advice| advice["area"] == "state" && advice["kind"] == "regroup"),
        "{advice:?}"
    );
    assert_eq!(report.area("bodies")["origin"]["allocation"]["stack"][0], "make_bodies, shares.c:83");
}

/// An incomplete recording is reported as far as possible, with a sentence about the missing part.
#[test]
fn programs_that_have_changed_and_cut_recordings_are_named() {
    let folder = Folder::new();
    folder.compile("shares");
    let ran = run(&mut whole().run(&folder, &["-n", "2", "--monitor=run.gwr", "--", "./shares"]), LIMIT);
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    let notes = |file: &str| {
        let mut report = Command::new(&whole().gondwana);
        let report = run(report.args(["report", file]).current_dir(&*folder), LIMIT);
        assert!(report.status.unwrap().success(), "{}", report.errors);
        report.output.lines().filter(|line| line.starts_with("Note: ")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(notes("run.gwr"), "");

    let whole_recording = fs::read(folder.join("run.gwr")).unwrap();
    fs::write(folder.join("cut.gwr"), &whole_recording[..whole_recording.len() - 1]).unwrap();
    assert!(notes("cut.gwr").contains("The recording is cut: the file ends within a chunk"));

    // As if the program had been recompiled.
    folder.compile("naive");
    fs::rename(folder.join("naive"), folder.join("shares")).unwrap();
    let changed = notes("run.gwr");
    assert!(
        changed.contains("shares has changed since it was recorded (it has another build ID)"),
        "{changed}"
    );
    fs::remove_file(folder.join("shares")).unwrap();
    let gone = notes("run.gwr");
    assert!(gone.ends_with("shares is gone: what is in it has no names."), "{gone}");
}

#[test]
fn areas_of_two_nodes_are_found_by_name() {
    shares("2", "rc");
}

#[test]
fn areas_of_four_nodes_are_found_by_name() {
    shares("4", "rc");
}

#[test]
fn areas_are_found_without_diffs() {
    shares("2", "sc");
    shares("4", "sc");
}

#[test]
fn areas_of_cpp_are_found_by_name() {
    for nodes in ["2", "4"] {
        let report = Report::of("cells", nodes, "rc");
        report.is("model::cells", &["falsely-shared"]);
        report.is("model::Board::turns", &["falsely-shared"]);
        report.is("model::rates", &["read-only"]);
        let sides = report.sides("model::cells");
        // Writes of a home are unknown, and it may be the home of the first element.
        let element = |side: &String| side.contains(" model::cells[") && side.ends_with("].visits");
        assert!(!sides.is_empty() && sides.iter().all(element), "{sides:?}");
        assert_eq!(report.area("model::cells")["fields"][0]["name"], "[].visits");
    }
}

/// A plan that named a caller would be about one depth only.
#[test]
fn what_a_function_that_calls_itself_allocates_is_one_area() {
    for consistency in ["rc", "sc"] {
        let report = Report::of("tree", "2", consistency);
        let areas = report.0["areas"].as_array().unwrap();
        let is_tree = |area: &&Value| {
            let site = area["origin"]["allocation"]["site"].as_str();
            site.is_some_and(|site| site.starts_with("build+"))
        };
        let trees: Vec<&Value> = areas.iter().filter(is_tree).collect();
        let [tree] = trees[..] else { panic!("{consistency}: {} areas", trees.len()) };
        assert_eq!((&tree["objects"], &tree["bytes"]), (&Value::from(16383), &Value::from(16383 * 56)));
        let origin = &tree["origin"]["allocation"];
        let calls = origin["stack"].as_array().unwrap().len();
        assert_eq!((&origin["caller"], calls), (&Value::from(""), 2), "{origin:#}");
    }
}
