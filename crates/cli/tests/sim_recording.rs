//! Recordings of simulated runs: `gondwana sim --monitor`, and what report and advisor say about them.

mod common;

use common::c_api::root;
use common::folder::Folder;
use common::simulated::{compile, gondwana, succeed};
use common::whole::{LIMIT, run};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Two nodes; `main` on the first, the next thread on the second.
const TWO_NODES: [&str; 5] = ["sim", "--machine", "wildfire-2x8", "--threads", "cpu:0;cpu:8"];

fn report(folder: &Path, recording: &str) -> Value {
    let ran = succeed(&mut gondwana(folder, &["report", "--json", recording]));
    serde_json::from_str(&ran.output).unwrap()
}

fn area<'a>(report: &'a Value, name: &str) -> &'a Value {
    let areas = report["areas"].as_array().unwrap();
    areas.iter().find(|area| area["name"] == name).unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

fn count(of: &Value, field: &str) -> u64 {
    of["totals"][field].as_u64().unwrap()
}

/// The program reads a table of 1000 lines, writes a grid of 500 lines and reads it on the other node.
#[test]
fn a_report_has_the_lines_that_the_source_says() {
    let folder = Folder::new();
    compile(&folder, "recorded.c");
    let ran = succeed(&mut gondwana(&folder, &[&TWO_NODES[..], &["--monitor", "./program"]].concat()));
    assert_eq!(ran.output, "4000\n");
    let report = report(&folder, "program.gwr");
    assert_eq!((&report["notes"], &report["run"]["fabric"]), (&Value::Array(vec![]), &"wildfire-2x8".into()));
    let table = area(&report, "table");
    assert_eq!(table["origin"]["variable"]["name"], "table");
    assert_eq!((count(table, "reads"), count(table, "cold"), count(table, "writes")), (1000, 1000, 0));
    assert_eq!((count(&table["nodes"][1], "reads"), &table["nodes"][1]["threads"]), (1000, &vec![1].into()));
    assert_eq!((&table["pattern"], count(table, "bytes")), (&"read-only".into(), 64_000));
    let place = |area: &Value, index: usize| {
        let place = &area["places"][index];
        (place["function"].as_str().unwrap().to_owned(), place["reads"].as_u64(), place["writes"].as_u64())
    };
    assert_eq!(place(table, 0), ("work".to_owned(), Some(1000), Some(0)));
    let grid = area(&report, "grid");
    let stack = grid["origin"]["allocation"]["stack"].to_string();
    assert!(stack.contains("make_grid") && stack.contains("main"), "{stack}");
    let of = |node: usize| ["reads", "writes"].map(|field| count(&grid["nodes"][node], field));
    assert_eq!((of(0), of(1)), ([500, 0], [0, 500]));
    assert_eq!((place(grid, 0).0, place(grid, 1).0), ("work".to_owned(), "main".to_owned()));
    assert_eq!(grid["nodes"][1]["written"], 500 * 4, "a word of each line");
    let names = |field: &str| report["threads"][1][field].clone();
    assert_eq!((names("routine"), names("node")), ("work".into(), 1.into()));
    let text = succeed(&mut gondwana(&folder, &["report", "program.gwr"])).output;
    assert!(text.starts_with("./program: 2 nodes, coherent caches over wildfire-2x8, "), "{text}");
    succeed(&mut gondwana(&folder, &["report", "--html", "program.gwr"]));
    assert!(fs::read_to_string(folder.join("program.html")).unwrap().contains("wildfire-2x8"));
}

/// Whatever the environment: the same recording each time, and the same statistics as without one.
#[test]
fn a_recording_is_the_same_each_time_and_changes_nothing() {
    let folder = Folder::new();
    for (file, machine) in [("recorded.c", "wildfire-2x8"), ("threads.cpp", "aviion-3x4"), ("far.c", "numaq")]
    {
        compile(&folder, file);
        let simulate = |json: &str, options: &[&str], size: usize| {
            let first = ["sim", "--machine", machine, "--threads", "round-robin", "--json", json];
            let mut command = gondwana(&folder, &[&first, options, &["./program"]].concat());
            succeed(command.env("FILLING", "x".repeat(size)));
            fs::read(folder.join(json)).unwrap()
        };
        let plain = simulate("plain.json", &[], 0);
        let recordings = [0, 1997].map(|size| {
            let statistics = simulate("recorded.json", &["--monitor=a.gwr"], size);
            assert!(statistics == plain, "{file} has other statistics if it is recorded");
            fs::read(folder.join("a.gwr")).unwrap()
        });
        assert!(recordings[0] == recordings[1], "{file} has two recordings");
    }
}

/// Each miss that another node supplied is in the recording once, and so are the blocks that went home.
#[test]
fn counts_are_those_of_the_statistics() {
    let folder = Folder::new();
    compile(&folder, "far.c");
    let first = ["sim", "--machine", "olifant-4x4", "--threads", "round-robin", "--placement", "striped"];
    let options = ["--json", "statistics.json", "--monitor=a.gwr", "./program"];
    succeed(&mut gondwana(&folder, &[&first[..], &options].concat()));
    let statistics: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("statistics.json")).unwrap()).unwrap();
    let counters = &statistics["counters"];
    let number = |value: &Value| value.as_u64().unwrap();
    let remote: u64 = (2..5).map(|supply| number(&counters["supplied"][supply])).sum();
    assert!(remote > 50_000, "{counters}");
    let report = report(&folder, "a.gwr");
    let waited = count(&report, "reads") + count(&report, "writes") + count(&report, "upgrades");
    assert_eq!(waited, remote + number(&counters["remote_upgrades"]));
    assert_eq!(count(&report, "diffs"), number(&counters["written_back"][1]));
    let sent: u64 = report["nodes"].as_array().unwrap().iter().map(|node| number(&node["messages"])).sum();
    let messages: u64 =
        statistics["nodes"].as_array().unwrap().iter().map(|node| number(&node["messages"])).sum();
    assert_eq!(sent, messages);
}

#[test]
fn atomic_variables_of_a_simulated_run_are_named() {
    let folder = Folder::new();
    compile(&folder, "objects.c");
    let options = ["sim", "--machine", "wildfire-2x8", "--threads", "round-robin", "--monitor=a.gwr"];
    let ran = succeed(&mut gondwana(&folder, &[&options[..], &["./program"]].concat()));
    assert_eq!(ran.output, "ok\n");
    let report = report(&folder, "a.gwr");
    let [atomic] = &report["atomics"].as_array().unwrap()[..] else { panic!("{report:#}") };
    assert_eq!(atomic["name"], "atomically");
    let source = include_str!("../../../tests/simulated/objects.c");
    let line = source.lines().position(|line| line.contains("__atomic_fetch_add(&atomically")).unwrap() + 1;
    assert_eq!(atomic["places"][0]["text"], format!("objects.c:{line}"));
    assert!([0, 1].iter().all(|&node| atomic["nodes"][node].as_u64().unwrap() > 0), "{atomic}");
}

/// Pages move and are replicated: statistics are those without a recording, the recording is the same each time and has each miss
/// that another node supplied and each page that moved; and its plan is one for the next run.
#[test]
fn pages_that_move_are_recorded() {
    let folder = Folder::new();
    compile(&folder, "replicated.c");
    let machine = fs::read_to_string(root().join("machines/wildfire-2x8.toml")).unwrap();
    fs::write(folder.join("moving.toml"), machine.replace("period = 0", "period = 4_000_000")).unwrap();
    let simulate = |options: &[&str]| -> Value {
        let first = ["sim", "--machine", "moving.toml", "--threads", "round-robin", "--json", "s.json"];
        succeed(&mut gondwana(&folder, &[&first, options, &["./program"]].concat()));
        serde_json::from_str(&fs::read_to_string(folder.join("s.json")).unwrap()).unwrap()
    };
    let plain = simulate(&[]);
    assert_eq!(simulate(&["--monitor=a.gwr"]), plain);
    simulate(&["--monitor=b.gwr"]);
    assert!(fs::read(folder.join("a.gwr")).unwrap() == fs::read(folder.join("b.gwr")).unwrap());
    let migrated = |statistics: &Value| -> u64 {
        let nodes = statistics["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["replication"]["migrated"].as_u64().unwrap()).sum()
    };
    let counters = &plain["counters"];
    let remote: u64 = (2..5).map(|supply| counters["supplied"][supply].as_u64().unwrap()).sum();
    let report = report(&folder, "a.gwr");
    let waited = count(&report, "reads") + count(&report, "writes") + count(&report, "upgrades");
    assert_eq!(waited, remote + counters["remote_upgrades"].as_u64().unwrap());
    assert_eq!(count(&report, "ahead"), 2 * migrated(&plain), "pages of 8 KiB, in parts of 4");
    let advised = succeed(&mut gondwana(&folder, &["advise", "-o", "plan.toml", "a.gwr"])).output;
    assert!(advised.contains("parts are each used by one node above all"), "{advised}");
    simulate(&["--plan", "plan.toml", "--monitor=c.gwr"]);
    let planned = self::report(&folder, "c.gwr");
    assert!(count(&planned, "diffs") * 3 < count(&report, "diffs") * 2, "{advised}");
}

/// What a run uses from the other node alone goes there by the plan that its recording gives, and stays there.
#[test]
fn advice_for_a_simulated_run_is_a_plan_for_the_next() {
    let folder = Folder::new();
    for (file, area) in [("far.c", "main, far.c:"), ("shared.c", "data")] {
        compile(&folder, file);
        let simulate = |options: &[&str]| {
            let options = [&TWO_NODES[..], options, &["--json", "statistics.json", "./program"]].concat();
            let ran = succeed(&mut gondwana(&folder, &options));
            let statistics = fs::read_to_string(folder.join("statistics.json")).unwrap();
            let counters = serde_json::from_str::<Value>(&statistics).unwrap()["counters"].clone();
            let supplied = |from: usize| counters["supplied"][from].as_u64().unwrap();
            (ran, supplied(2) + supplied(3) + supplied(4))
        };
        let (first, before) = simulate(&["--monitor=a.gwr"]);
        let advised =
            succeed(&mut gondwana(&folder, &["advise", "-o", "plan.toml", "--force", "a.gwr"])).output;
        assert!(advised.contains(area) && !advised.contains("replicate"), "{advised}");
        let (second, after) = simulate(&["--plan", "plan.toml", "--monitor=b.gwr"]);
        assert_eq!((&second.output, second.errors.as_str()), (&first.output, ""), "{file}");
        assert!(after < before * 2 / 3, "{file}: {before} misses left their node, and {after} still do");
        let report = report(&folder, "b.gwr");
        assert_eq!(report["run"]["plan"], "plan.toml");
    }
}

/// Threads go where a plan says; of what a plan does not find, a sentence tells.
#[test]
fn a_plan_moves_threads_and_says_what_it_does_not_find() {
    let folder = Folder::new();
    compile(&folder, "recorded.c");
    let simulate = |plan: &str| {
        fs::write(folder.join("plan.toml"), format!("version = 1\n\n{plan}")).unwrap();
        let options = ["--plan", "plan.toml", "--monitor=a.gwr", "./program"];
        succeed(&mut gondwana(&folder, &[&TWO_NODES[..], &options].concat()))
    };
    simulate("[[thread]]\nthreads = [0, 1]\ntogether = true\n");
    let of = |report: &Value, thread: usize| report["threads"][thread]["node"].as_u64().unwrap();
    let moved = report(&folder, "a.gwr");
    assert_eq!((of(&moved, 0), of(&moved, 1), count(&moved, "reads")), (0, 0, 0));
    simulate("[[thread]]\nthreads = [1]\nnode = 0\n");
    let moved = report(&folder, "a.gwr");
    assert_eq!((of(&moved, 0), of(&moved, 1)), (0, 0));
    let ran = simulate("[[variable]]\nname = \"nothing\"\npolicy = \"local\"\n");
    let first = ran.errors.lines().next().unwrap_or_default();
    assert!(
        first == "gondwana: plan.toml: line 4: there is no variable nothing in ./program",
        "{}",
        ran.errors
    );
    fs::write(folder.join("plan.toml"), "version = 1\n[[variable]]\nname = \"table\"\npolicy = \"mem:9\"\n")
        .unwrap();
    let ran =
        run(&mut gondwana(&folder, &[&TWO_NODES[..], &["--plan", "plan.toml", "./program"]].concat()), LIMIT);
    assert_eq!(ran.status.unwrap().code(), Some(2));
    assert!(ran.errors.starts_with("gondwana: plan.toml: line 4: "), "{}", ran.errors);
}

#[test]
fn what_cannot_be_recorded_is_said_in_one_sentence() {
    let folder = Folder::new();
    compile(&folder, "counts.c");
    let cases: [(&[&str], i32, &str); 4] = [
        (
            &["--monitor", "--sweep", "l2.size=512KiB,1MiB", "./program"],
            2,
            "--monitor records one run: give one --machine and no --sweep",
        ),
        (&["--monitor=auto", "./program"], 2, "--monitor=auto: the simulator records each transaction"),
        (&["--monitor=/nowhere/a.gwr", "./program"], 125, "--monitor: /nowhere/a.gwr cannot be written: "),
        (&["--monitor=a.gwr", "/bin/true"], 126, "/bin/true was not built for the simulator"),
    ];
    for (arguments, status, sentence) in cases {
        let ran = run(&mut gondwana(&folder, &[&["sim", "--machine", "numaq"], arguments].concat()), LIMIT);
        assert_eq!(ran.status.and_then(|status| status.code()), Some(status), "{}", ran.errors);
        assert!(ran.errors.starts_with(&format!("gondwana: {sentence}")), "{arguments:?}: {}", ran.errors);
        assert_eq!(ran.errors.lines().count(), 1, "{}", ran.errors);
    }
    assert!(!folder.join("a.gwr").exists() && !folder.join("program.gwr").exists());
    let ran = run(
        &mut gondwana(&folder, &["sim", "--machine", "numaq", "--monitor=/dev/full", "./program"]),
        LIMIT,
    );
    assert!(ran.errors.contains("/dev/full"), "{}", ran.errors);
}
