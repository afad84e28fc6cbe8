//! `gondwana advise`: from a recording to a plan, and a run with the plan.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_plan::{Homes, Plan};
use serde_json::Value;
use std::process::Command;

fn advise(folder: &Folder, options: &[&str]) -> Ran {
    run(Command::new(&whole().gondwana).arg("advise").args(options).current_dir(&**folder), LIMIT)
}

fn code(ran: &Ran) -> i32 {
    ran.status.expect("it ends").code().expect("by itself")
}

#[test]
fn a_naive_program_is_recorded_advised_and_run_again() {
    let folder = Folder::new();
    folder.compile("naive");
    let native = run(Command::new("./naive").current_dir(&*folder), LIMIT).output;
    let again = |options: &[&str]| {
        let all = [&["-n", "4", "--consistency", "rc", "--memory", "striped:1"], options, &["--", "./naive"]];
        let ran = run(&mut whole().run(&folder, &all.concat()), LIMIT);
        assert_eq!(ran.output, native, "{options:?}: {}", ran.errors);
        ran
    };
    again(&["--monitor=naive.gwr"]);

    let advised = advise(&folder, &["naive.gwr", "-o", "plan.toml"]);
    assert_eq!(code(&advised), 0, "{}", advised.errors);
    // Each thread's rows, in an order that is not that of the nodes.
    assert!(advised.output.contains(". rows: parts, saves about "), "{}", advised.output);
    let text = std::fs::read_to_string(folder.join("plan.toml")).unwrap();
    let machine = gondwana_control::machine(4, 1, 1 << 30);
    let plan = Plan::parse(&text, &machine, &gondwana_rset::Registry::default()).unwrap();
    let (before, expected) = (plan.before.unwrap(), plan.expected.unwrap());
    assert!(expected.requests < before.requests / 2, "{text}");
    let rows = plan.variables.iter().find(|entry| entry.name == "rows").expect("rows are placed");
    let Homes::Parts(parts) = &rows.homes else { panic!("{rows:?}") };
    assert_eq!(
        parts.iter().map(|part| (part.pages, part.node.0)).collect::<Vec<_>>(),
        [(32, 1), (32, 2), (32, 3), (32, 0)]
    );

    let planned = again(&["--plan", "plan.toml", "--strict"]);
    let line =
        planned.errors.lines().find(|line| line.starts_with("gondwana: plan: ")).expect("there is a line");
    let requests: String =
        line.chars().skip("gondwana: plan: requests ".len()).take_while(|it| *it != ' ').collect();
    let requests: u64 = requests.replace(',', "").parse().unwrap();
    assert!(requests < before.requests / 2, "{line}");

    let refused = advise(&folder, &["naive.gwr", "-o", "plan.toml"]);
    assert!(
        code(&refused) == 125 && refused.errors.contains("plan.toml is there already: add --force"),
        "{}",
        refused.errors
    );
    assert_eq!(std::fs::read_to_string(folder.join("plan.toml")).unwrap(), text);
    assert_eq!(code(&advise(&folder, &["naive.gwr", "-o", "plan.toml", "--force"])), 0);
    let printed = advise(&folder, &["naive.gwr"]);
    assert_eq!(printed.output, std::fs::read_to_string(folder.join("plan.toml")).unwrap());
    let json: Value = serde_json::from_str(&advise(&folder, &["naive.gwr", "--json"]).output).unwrap();
    assert_eq!(json["before"]["requests"], before.requests);
    assert!(json["advice"].as_array().unwrap().iter().any(|advice| advice["area"] == "rows"), "{json}");
}

#[test]
fn what_is_no_recording_is_refused_in_a_sentence() {
    let folder = Folder::new();
    std::fs::write(folder.join("text"), "version = 1\n").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    for (file, words) in [
        ("missing.gwr", "missing.gwr cannot be read: No such file"),
        ("text", "text: this is no recording"),
        ("empty", "empty: this is no recording"),
        (".", ".: "),
    ] {
        let ran = advise(&folder, &[file, "-o", "plan.toml"]);
        assert_eq!((code(&ran), ran.output.as_str()), (125, ""), "{file}");
        assert!(ran.errors.contains(words) && ran.errors.lines().count() == 1, "{file}: {}", ran.errors);
    }
    assert_eq!(code(&advise(&folder, &["text", "--force"])), 2);
    assert!(!folder.join("plan.toml").exists());
}
