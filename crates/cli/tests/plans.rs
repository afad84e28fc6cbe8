//! Effects of plans: programs print the same, and transactions between nodes change.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use serde_json::Value;
use std::process::Command;

/// A program, compiled, in a folder that goes with the test.
struct Tried(Folder, &'static str);

impl Tried {
    fn new(name: &'static str) -> Self {
        let folder = Folder::new();
        folder.compile(name);
        Self(folder, name)
    }

    fn program(&self) -> String {
        format!("./{}", self.1)
    }

    fn native(&self) -> String {
        run(Command::new(self.program()).current_dir(&*self.0), LIMIT).output
    }

    fn run(&self, options: &[&str], plan: &str) -> Ran {
        std::fs::write(self.0.join("plan.toml"), plan).unwrap();
        let program = self.program();
        let more = ["--plan", "plan.toml", "--stats=stats.json", "--", &program];
        run(&mut whole().run(&self.0, &[options, &more].concat()), LIMIT)
    }

    fn stats(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.join("stats.json")).unwrap()).unwrap()
    }

    /// The requests between nodes.
    fn requests(&self) -> u64 {
        let total = &self.stats()["total"];
        let count = |group: &str, name: &str| total[group][name].as_u64().expect("is counted");
        count("pages", "awaited") + count("diffs", "sent") + count("notices", "received")
    }
}

const NOTHING: &str = "version = 1\n";

/// Threads 1 to 4 are on the nodes 1, 2, 3 and 0, unless the plan says otherwise.
const PARTS: &str = r#"version = 1
[[variable]]
name = "rows"
parts = [{ pages = 32, node = 1 }, { pages = 32, node = 2 }, { pages = 32, node = 3 }, { pages = 32, node = 0 }]
"#;

/// The same by moving the threads to where blocks are.
const BLOCKS: &str = r#"version = 1
[[variable]]
name = "rows"
policy = "block"
[[thread]]
threads = [1]
node = 0
[[thread]]
threads = [2]
node = 1
[[thread]]
threads = [3]
node = 2
[[thread]]
threads = [4]
node = 3
"#;

const TOGETHER: &str = r#"version = 1
[[thread]]
threads = [1, 3]
together = true
[[thread]]
threads = [2, 4]
together = true
"#;

const REPLICATE: &str = r#"version = 1
[[allocation]]
site = "make_table"
replicate = true
"#;

#[test]
fn plans_for_parts_threads_and_replicas_save_requests() {
    let naive = Tried::new("naive");
    let expected = naive.native();
    for fabric in ["shm", "tcp"] {
        let options =
            ["-n", "4", "--fabric", fabric, "--consistency", "rc", "--memory", "striped:1", "--strict"];
        let requests = |plan: &str| {
            let ran = naive.run(&options, plan);
            assert_eq!(ran.output, expected, "{fabric} {plan}: {}", ran.errors);
            naive.requests()
        };
        let before = requests(NOTHING);
        // Rows are written in 40 rounds, three quarters of them elsewhere than at home.
        let (parts, blocks) = (requests(PARTS), requests(BLOCKS));
        assert!(parts < before / 2 && blocks < before / 2, "{fabric}: {before}, {parts}, {blocks}");
        // The boxes are few pages among many, but each is handed to and fro.
        let together = requests(TOGETHER);
        assert!(together < before - 20, "{fabric}: {before}, {together}");
        // 600 pages, three quarters of them elsewhere than each of four nodes.
        let replicated = requests(REPLICATE);
        assert!(replicated < before - 500, "{fabric}: {before}, {replicated}");
    }
}

#[test]
fn plans_change_no_result_under_either_consistency() {
    let naive = Tried::new("naive");
    let expected = naive.native();
    for plan in [PARTS, BLOCKS, TOGETHER, REPLICATE] {
        let ran = naive.run(&["-n", "4", "--consistency", "sc"], plan);
        assert_eq!(ran.output, expected, "{plan}: {}", ran.errors);
    }
}

#[test]
fn what_was_expected_stands_beside_what_is_achieved() {
    let naive = Tried::new("naive");
    let tables =
        "version = 1\n[before]\nrequests = 10000000\nbytes = 5\n[expected]\nrequests = 7\nbytes = 1\n";
    let plan = PARTS.replacen("version = 1\n", tables, 1);
    let ran = naive.run(&["-n", "4"], &plan);
    let requests = naive.requests();
    let line = ran.errors.lines().find(|line| line.starts_with("gondwana: plan: ")).expect("there is a line");
    let number: String = line
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(|letter| *letter != ' ')
        .collect();
    assert_eq!(number.replace(',', "").parse(), Ok(requests), "{line}");
    assert!(line.contains("(before 10,000,000, expected 7: ") && line.contains(" times fewer)"), "{line}");
    assert!(line.contains("(before 5, expected 1: ") && line.contains(" times more)"), "{line}");
}

#[test]
fn cpp_allocations_are_known_by_the_call_in_the_program() {
    const PAGES: u64 = 100;
    let grows = Tried::new("grows");
    let expected = grows.native();
    let asked = |sites: &[&str]| -> Vec<u64> {
        let entry = |site: &&str| {
            format!(
                "[[allocation]]\nsite = \"{site}\"\nmin_bytes = 65536\nmax_bytes = 1000000\npolicy = \"node:1\"\n"
            )
        };
        let plan = format!("version = 1\n{}", sites.iter().map(entry).collect::<String>());
        let ran = grows.run(&["-n", "2", "--strict"], &plan);
        assert_eq!(ran.output, expected, "{sites:?}: {}", ran.errors);
        let stats = grows.stats();
        (0..2).map(|node| stats["nodes"][node]["homes"]["asked"].as_u64().unwrap_or(0)).collect()
    };
    let text = "text()";
    assert_eq!(asked(&["plain()"]), [0, PAGES]);
    assert_eq!(asked(&["aligned()"]), [0, PAGES]);
    assert_eq!(asked(&[text]), [0, PAGES]);
    assert_eq!(asked(&["plain()", "aligned()", text]), [0, 3 * PAGES]);
}

#[test]
fn plans_that_cannot_be_followed_are_refused_by_line() {
    let naive = Tried::new("naive");
    for (plan, words) in [
        (
            "version = 1\n[[thread]]\nthreads = [1, 2]\nnode = 4\n",
            "plan.toml: line 4: node: there is no node 4",
        ),
        (
            "version = 1\n[[thread]]\nthreads = [1]\nnode = 1\n[[thread]]\nthreads = [2, 1]\ntogether = true\n",
            "plan.toml: line 6: threads: thread 1 is listed in line 3 already",
        ),
        (
            "version = 1\n[[variable]]\nname = \"rows\"\nparts = [{ pages = 1, node = 9 }]\n",
            "plan.toml: line 4: node: there is no node 9, nodes 0 to 3",
        ),
    ] {
        let ran = naive.run(&["-n", "4"], plan);
        assert_eq!(ran.status.unwrap().code(), Some(2), "{plan}");
        assert!(ran.errors.contains(words), "{plan}: {}", ran.errors);
        assert_eq!(ran.output, "");
    }
}
