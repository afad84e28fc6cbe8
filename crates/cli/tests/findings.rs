//! Findings in a program with known defects: by name, to the byte.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// The JSON output of a command about a recording.
fn told(folder: &Folder, command: &str) -> Value {
    let mut words = Command::new(&whole().gondwana);
    let ran = run(words.args([command, "--json", "found.gwr"]).current_dir(&**folder), LIMIT);
    assert!(ran.status.is_some_and(|status| status.success()), "{}", ran.errors);
    serde_json::from_str(&ran.output).unwrap()
}

/// The parts of a page that nodes use, as the report names them: node, whether it writes, and name.
fn uses(area: &Value) -> BTreeSet<(u64, bool, String)> {
    let pages = area["falsely_shared"].as_array().unwrap();
    let uses = pages.iter().flat_map(|page| page["writers"].as_array().unwrap());
    uses.map(|one| {
        let name = one["name"].as_str().unwrap().to_owned();
        (one["node"].as_u64().unwrap(), one["writes"].as_bool().unwrap(), name)
    })
    .collect()
}

#[test]
fn false_sharing_and_hot_fields_are_found_by_name() {
    let folder = Folder::new();
    folder.compile("findings");
    let options = ["-n", "4", "--consistency", "rc", "--monitor=found.gwr", "--", "./findings"];
    let ran = run(&mut whole().run(&folder, &options), LIMIT);
    assert_eq!(ran.output, "240 counts, 15360 hits\n", "{}", ran.errors);

    let report = told(&folder, "report");
    let areas = report["areas"].as_array().unwrap();
    let area = |name: &str| areas.iter().find(|area| area["name"] == name);

    // Each thread's element is written by a different node.
    let counters = area("counters").expect("counters cross between nodes");
    assert_eq!(counters["pattern"], "falsely-shared", "{counters}");
    let written: Vec<_> = uses(counters).into_iter().filter(|(_, writes, _)| *writes).collect();
    let names: BTreeSet<&str> = written.iter().map(|(_, _, name)| name.as_str()).collect();
    assert_eq!(names, ["counters[0]", "counters[1]", "counters[2]", "counters[3]"].into(), "{counters}");
    assert_eq!(written.iter().map(|(node, ..)| node).collect::<BTreeSet<_>>().len(), 4, "{counters}");

    // The same with pages of their own.
    if let Some(padded) = area("padded") {
        assert!(uses(padded).is_empty() && padded["pattern"] != "falsely-shared", "{padded}");
        let requests = |area: &Value| {
            ["reads", "writes", "diffs", "notices"]
                .map(|what| area["totals"][what].as_u64().unwrap())
                .iter()
                .sum::<u64>()
        };
        assert!(requests(padded) < requests(counters) / 4, "{padded} {counters}");
    }

    let particles = area("particles").expect("particles cross between nodes");
    assert_eq!(particles["pattern"], "falsely-shared", "{particles}");
    let fields = |writes| -> BTreeSet<String> {
        let uses = uses(particles).into_iter().filter(|one| one.1 == writes);
        uses.filter_map(|(_, _, name)| Some(name.split_once("].")?.1.to_owned())).collect()
    };
    assert_eq!(fields(true), ["hits".to_owned()].into(), "{particles}");
    assert!(fields(false).iter().any(|field| field.starts_with("mass")), "{particles}");

    let advice = told(&folder, "advise");
    let change = |area: &str| {
        let advice = advice["advice"].as_array().unwrap().iter().filter(|one| one["area"] == area);
        advice.map(|one| one["change"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
    };
    assert!(change("counters").contains("pad counters"), "{advice}");
    assert!(change("particles").contains(".hits of particles"), "{advice}");
    assert_eq!(change("padded"), "", "{advice}");
}
