//! Placement of threads and pages by `gondwana run`: requested placement is achieved and counted, and programs behave
//! as natively.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use serde_json::Value;
use std::process::Command;

/// Pages of the block that the program below allocates.
const PAGES: u64 = 400;

/// The program, which adds up a block, a variable and many small blocks, and writes parts of them by turns.
const PROGRAM: &str = include_str!("programs/placed.c");

/// The program, compiled, in a folder that goes with the test.
struct Placed(Folder);

impl Placed {
    fn new() -> Self {
        let folder = Folder::new();
        folder.compile("placed");
        Self(folder)
    }

    fn native(&self) -> String {
        run(Command::new("./placed").current_dir(&*self.0), LIMIT).output
    }

    fn plan(&self, text: &str) {
        std::fs::write(self.0.join("plan.toml"), text).unwrap();
    }

    fn run(&self, options: &[&str]) -> Ran {
        run(&mut whole().run(&self.0, &[options, &["--stats=stats.json", "--", "./placed"]].concat()), LIMIT)
    }

    /// Asked, found and untouched, for each node.
    fn homes(&self, nodes: usize) -> Vec<[u64; 3]> {
        let stats = self.stats();
        let of = |node: usize| {
            ["asked", "found", "untouched"]
                .map(|name| stats["nodes"][node]["homes"][name].as_u64().expect("is reported"))
        };
        (0..nodes).map(of).collect()
    }

    /// How many threads have begun on each of four nodes.
    fn started(&self) -> [u64; 4] {
        let stats = self.stats();
        [0, 1, 2, 3].map(|node| stats["nodes"][node]["threads"]["started"].as_u64().expect("is reported"))
    }

    /// The counters of the last run.
    fn stats(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.join("stats.json")).unwrap()).unwrap()
    }
}

#[test]
fn programs_do_as_they_do_alone_under_every_policy() {
    let placed = Placed::new();
    let expected = placed.native();
    for nodes in ["2", "4"] {
        for fabric in ["shm", "tcp"] {
            for consistency in ["rc", "sc"] {
                for memory in
                    ["float", "local", "remote", "striped:1", "striped:16", "block", "node:1", "mem:0-1"]
                {
                    let options =
                        ["-n", nodes, "--fabric", fabric, "--consistency", consistency, "--memory", memory];
                    let ran = placed.run(&options);
                    assert_eq!(ran.output, expected, "{options:?}: {}", ran.errors);
                    if memory != "float" {
                        let homes = placed.homes(nodes.parse().unwrap());
                        let sum = |index: usize| homes.iter().map(|of| of[index]).sum::<u64>();
                        assert!(sum(0) >= PAGES + 64, "{options:?}: {homes:?}");
                        assert_eq!(sum(0), sum(1) + sum(2), "{options:?}: {homes:?}");
                    }
                }
            }
        }
    }
}

/// The block alone is placed, by a plan, so that every page counts.
#[test]
fn every_page_is_where_a_plan_has_asked_for_it() {
    let placed = Placed::new();
    let expected = placed.native();
    let line = PROGRAM.lines().position(|line| line.contains("char *made")).unwrap() + 1;
    let sites = ["make_block".to_owned(), format!("placed.c:{line}")];
    let quarter = PAGES / 4;
    for (policy, counts) in [
        ("local", [PAGES, 0, 0, 0]),
        ("remote", [0, PAGES, 0, 0]),
        ("striped:1", [quarter; 4]),
        ("striped:150", [150, 150, 100, 0]),
        ("block", [quarter; 4]),
        ("node:2", [0, 0, PAGES, 0]),
    ] {
        for site in &sites {
            let plan = format!(
                "version = 1\n[[allocation]]\nsite = \"{site}\"\npolicy = \"{policy}\"\n\
                 [[variable]]\nname = \"table\"\npolicy = \"node:3\"\n"
            );
            placed.plan(&plan);
            for consistency in ["rc", "sc"] {
                let options = ["-n", "4", "--consistency", consistency, "--plan", "plan.toml", "--strict"];
                let ran = placed.run(&options);
                assert_eq!(ran.output, expected, "{policy} {site} {consistency}: {}", ran.errors);
                let homes = placed.homes(4);
                for (node, of) in homes.iter().enumerate() {
                    let asked = counts[node] + if node == 3 { 64 } else { 0 };
                    assert_eq!(of[..2], [asked, asked], "{policy} {site} {consistency}: {homes:?}");
                }
            }
        }
    }
}

/// Separate hosts, each with an agent: policies and plans arrive over the network.
#[test]
fn several_hosts_have_the_same_policies_and_plans() {
    let placed = Placed::new();
    let expected = placed.native();
    placed.plan(
        "version = 1\n[[allocation]]\nsite = \"make_block\"\npolicy = \"striped:150\"\n\
         [[variable]]\nname = \"table\"\npolicy = \"node:3\"\n",
    );
    let here = ["-n", "4", "--fabric", "tcp", "--threads", "node:0;node:3;node:3"];
    let hosts = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"];
    for consistency in ["rc", "sc"] {
        for policy in [["--memory", "remote"], ["--memory", "striped:16"], ["--plan", "plan.toml"]] {
            let options = [&here[..], &["--consistency", consistency], &policy].concat();
            let counted = |options: &[&str]| {
                let ran = placed.run(options);
                assert_eq!(ran.output, expected, "{options:?}: {}", ran.errors);
                let homes = placed.homes(4).into_iter();
                homes.zip(placed.started()).collect::<Vec<_>>()
            };
            let alone = counted(&options);
            assert_eq!(counted(&[&options[..], &hosts].concat()), alone, "{options:?}");
            assert!(
                alone.iter().map(|(homes, _)| homes[1]).sum::<u64>() >= PAGES + 64,
                "{options:?}: {alone:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_is_said_in_a_sentence() {
    let placed = Placed::new();
    let says = |options: &[&str], status: i32, words: &[&str]| {
        let ran = placed.run(options);
        assert_eq!(ran.status.unwrap().code(), Some(status), "{options:?}: {}", ran.errors);
        for word in words {
            assert!(ran.errors.contains(word), "{options:?}: {}", ran.errors);
        }
    };
    says(&["--memory", "striped:0"], 2, &["--memory", "striped:0"]);
    says(&["-n", "2", "--memory", "node:5"], 2, &["--memory", "node:5"]);
    says(&["-n", "2", "--threads", "node:0;"], 2, &["--threads"]);
    says(&["-n", "1", "--memory", "remote"], 2, &["--memory", "remote"]);
    says(&["--plan", "missing.toml"], 125, &["missing.toml", "cannot be read"]);
    let plan = |text: &str| placed.plan(text);
    plan("version = 1\n[[variable]]\nname = \"x\"\npolicy = \"stripy\"\n");
    says(&["--plan", "plan.toml"], 2, &["plan.toml: line 4: policy: "]);
    plan(
        "version = 1\n[[variable]]\nname = \"x\"\npolicy = \"block\"\n[[allocation]]\nsite = \"y+0x1\"\npolicy = \"block\"\n",
    );
    let missing = ["plan.toml: line 3: there is no variable x in", "line 6: there is no y+0x1 in"];
    says(&["--plan", "plan.toml"], 0, &missing);
    says(&["--plan", "plan.toml", "--strict"], 125, &missing);
}

#[test]
fn threads_go_where_they_are_sent() {
    let placed = Placed::new();
    let expected = placed.native();
    for (threads, counts) in [
        ("node:0;node:1", [2, 2, 0, 0]),
        ("node:2", [0, 0, 4, 0]),
        ("node:0;node:3;node:3", [1, 0, 0, 3]),
        ("round-robin", [1, 1, 1, 1]),
    ] {
        let ran = placed.run(&["-n", "4", "-t", "2", "--threads", threads]);
        assert_eq!(ran.output, expected, "{threads}: {}", ran.errors);
        assert_eq!(placed.started(), counts, "{threads}");
    }
}
