//! Findings in a program with known defects: by name, to the byte.

mod common;

use common::c_api::root;
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

/// Compiles the program with uneven loops, records it on two nodes, and checks that the uneven loop is named as what makes threads wait.
fn uneven_loop_is_named(compiler: &str) {
    let folder = Folder::new();
    let source = root().join("crates/cli/tests/programs/uneven.c");
    let text = std::fs::read_to_string(&source).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("/* uneven */")).unwrap();
    let mut compile = Command::new(compiler);
    compile.args(["-O2", "-g", "-fopenmp", "-o"]).arg(folder.join("uneven")).arg(&source);
    assert!(compile.status().unwrap().success(), "{compile:?}");
    let options = ["-n", "2", "--monitor=found.gwr", "--", "./uneven"];
    let ran = run(&mut whole().run(&folder, &options), LIMIT);
    assert_eq!(ran.output, "240 iterations\n", "{}", ran.errors);

    let report = told(&folder, "report");
    let constructs = report["constructs"].as_array().unwrap();
    // A compiler names the loop by its own line, by that of its pragma, or by what it calls last.
    let place = constructs[0]["place"].as_str().unwrap();
    let lines = [line - 1, line, line + 1].map(|line| format!("uneven.c:{line}"));
    assert!(lines.contains(&place.to_owned()), "{report}");
    assert_eq!((&constructs[0]["executions"], &constructs[0]["region"]), (&4.into(), &false.into()));
    let threads = constructs[0]["threads"].as_array().unwrap();
    let of = |thread: usize, what: &str| threads[thread][what].as_f64().unwrap();
    assert_eq!([0, 1].map(|thread| (of(thread, "number"), of(thread, "node"))), [(0.0, 0.0), (1.0, 1.0)]);
    // Four times ten iterations of 5 ms. The other thread begins as much later as it was waited for before.
    assert!(of(1, "worked") >= 0.2 && of(1, "longest") >= 0.05, "{}", constructs[0]);
    assert!(of(0, "waited") > of(1, "waited") && of(0, "worked") < of(1, "worked"), "{}", constructs[0]);
    // Two loops with barriers, and the end of the region, which is that of the third.
    assert!(
        constructs.len() >= 3 && constructs.iter().any(|construct| construct["region"] == true),
        "{report}"
    );
    let dealt = constructs.iter().filter(|construct| construct["dealt"] == true);
    assert_eq!(dealt.count(), 1, "{report}");

    let advice = told(&folder, "advise");
    let all = advice["advice"].as_array().unwrap();
    let balance = all.iter().find(|one| one["kind"] == "balance").expect("uneven work is told");
    assert!(balance["area"].as_str().unwrap().starts_with(place), "{balance}");
    assert!(balance["change"].as_str().unwrap().contains("divide"), "{balance}");

    let said = |options: &[&str]| {
        let mut words = Command::new(&whole().gondwana);
        run(words.arg("report").args(options).arg("found.gwr").current_dir(&*folder), LIMIT)
    };
    let text = said(&[]).output;
    let table = text.split_once("barrier at the end of").map_or("", |(_, table)| table);
    assert!(table.lines().nth(1).is_some_and(|first| first.starts_with(place)), "{text}");
    said(&["--html=page.html"]);
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    let section = page.split_once("id=\"constructs\"").map_or("", |(_, section)| section);
    assert!(section.contains(place) && section.contains("thread 1 on node 1"), "{section}");
}

#[test]
fn the_loop_that_makes_threads_wait_is_named() {
    uneven_loop_is_named("gcc");
}

/// Two nodes take by turns what is on these pages: each round one of them misses at least.
#[test]
fn variables_that_synchronise_by_atomics_are_found_by_name() {
    let folder = Folder::new();
    folder.compile("atomics");
    let options = ["-n", "2", "--common-after", "0", "--monitor=found.gwr", "--", "./atomics"];
    let ran = run(&mut whole().run(&folder, &options), LIMIT);
    assert_eq!(ran.output, "80 160 40 40\n", "{}", ran.errors);

    let report = told(&folder, "report");
    let atomics = report["atomics"].as_array().unwrap();
    let names: BTreeSet<&str> = atomics.iter().map(|atomic| atomic["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["counter", "queue[0].tail"].into(), "{report:#}");
    let source = include_str!("programs/atomics.c");
    let line = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() + 1;
    for (name, text) in [("counter", "atomic_fetch_add"), ("queue[0].tail", "atomic_compare_exchange_weak")] {
        let atomic = atomics.iter().find(|atomic| atomic["name"] == name).unwrap();
        let nodes = [0, 1].map(|node| atomic["nodes"][node].as_u64().unwrap());
        assert!(nodes.iter().all(|&misses| misses > 0) && nodes.iter().sum::<u64>() >= 40, "{atomic}");
        // Main reads the result, and misses if its node was not the last one.
        let threads: Vec<_> =
            atomic["threads"].as_array().unwrap().iter().filter(|thread| **thread != 0).collect();
        assert_eq!(threads, [1, 2], "{atomic}");
        let places = atomic["places"].as_array().unwrap();
        let place = format!("atomics.c:{}", line(text));
        assert!(places.iter().any(|it| it["text"] == place.as_str() && it["function"] == "work"), "{atomic}");
    }
    let area = |name: &str| report["areas"].as_array().unwrap().iter().any(|area| area["name"] == name);
    assert!(area("plain"), "it crosses as well: {report:#}");

    let mut command = Command::new(&whole().gondwana);
    let text = run(command.args(["report", "found.gwr"]).current_dir(&*folder), LIMIT).output;
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("atomic variable")).collect();
    assert!(table.iter().any(|line| line.starts_with("counter") && line.contains("nodes 0-1")), "{text}");
    let mut command = Command::new(&whole().gondwana);
    run(command.args(["report", "--html", "found.gwr"]).current_dir(&*folder), LIMIT);
    let page = std::fs::read_to_string(folder.join("found.html")).unwrap();
    let section = page.split_once("<h2 id=\"atomics-title\">").expect("the page has them").1;
    assert!(section.split_once("</section>").unwrap().0.contains("<bdi>queue[0].tail</bdi>"));
}
