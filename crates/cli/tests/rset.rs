//! Named resource sets, as people make, see and remove them.

mod common;

use common::folder::Folder;
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const QUAD: &str = r#"
[[node]]
id = 0
processors = "0-3"
memory.total = "16GiB"
[[node]]
id = 1
processors = "4-7"
memory.total = "16GiB"
[[node]]
id = 2
memory.total = "64GiB"
"#;

/// A user with a home folder that holds the description of a machine.
struct User(Folder);

impl User {
    fn new() -> Self {
        let folder = Folder::new();
        fs::write(folder.join("quad.toml"), QUAD).unwrap();
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gondwana"));
        command.arg("rset").args(arguments).current_dir(&*self.0);
        command.env("XDG_STATE_HOME", self.0.join("state")).env_remove("HOME");
        command
    }

    /// The output of a successful command.
    fn prints(&self, arguments: &[&str]) -> String {
        succeeded(&self.command(arguments).output().unwrap())
    }

    /// Makes a set of the described machine.
    fn make(&self, arguments: &[&str]) {
        assert_eq!(self.prints(&[&["make", "--machine", "quad.toml"], arguments].concat()), "");
    }

    /// The message of a command that fails with this status.
    fn refused(&self, arguments: &[&str], status: i32) -> String {
        failed(&self.command(arguments).output().unwrap(), status)
    }

    fn refused_make(&self, arguments: &[&str]) -> String {
        self.refused(&[&["make", "--machine", "quad.toml"], arguments].concat(), 2)
    }

    fn show(&self, set: &str) -> String {
        self.prints(&["show", "--machine", "quad.toml", set])
    }
}

fn succeeded(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn failed(output: &Output, status: i32) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(status), &[][..]), "{said}");
    said.strip_prefix("gondwana: ").unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn sets_outlive_the_command_that_makes_them() {
    let user = User::new();
    assert!(user.prints(&["list"]).starts_with("no set has a name yet"));
    user.make(&["web", "node:0|mem:2", "--exclusive"]);
    user.make(&["front", "web & cpu:0-1", "--parent", "web"]);
    user.make(&["batch", "all - web"]);
    let list = "\
set      processors  memory of nodes  exclusive  made from
batch    4-7         1                           all - web
web      0-3         0,2              yes        node:0|mem:2
  front  0-1         0                           web & cpu:0-1
";
    assert_eq!(user.prints(&["list"]), list);
    let json: Value = serde_json::from_str(&user.prints(&["list", "--json"])).unwrap();
    assert_eq!(json[1]["name"], "front");
    assert_eq!((&json[1]["parent"], &json[1]["processors"]), (&"web".into(), &"0-1".into()));
    assert_eq!(user.prints(&["remove", "front"]), "");
    assert!(!user.prints(&["list"]).contains("front"));
}

#[test]
fn show_says_what_a_set_has() {
    let user = User::new();
    user.make(&["web", "node:0|mem:2", "--exclusive"]);
    user.make(&["front", "web&cpu:0", "--parent", "web"]);
    let web = "\
set         proc:0-3|mem:0,2
processors  0-3 (4 on node 0)
memory      80 GiB of nodes 0,2
made from   node:0|mem:2
exclusive   yes
parts       front
";
    assert_eq!(user.show("web"), web);
    assert_eq!(
        user.show("cpu:3-4 - mem:1"),
        "set         proc:3-4|mem:0\nprocessors  3-4 (2 on nodes 0-1)\nmemory      16 GiB of node 0\n"
    );
    assert_eq!(user.show("none"), "set         none\nprocessors  none\nmemory      none\n");
    let json = user.prints(&["show", "--json", "--machine", "quad.toml", "front"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["set"], &json["memory_bytes"]), (&"proc:0|mem:0".into(), &(16u64 << 30).into()));
    assert_eq!(json["named"]["parent"], "web");
}

#[test]
fn this_computer_is_the_machine_unless_another_is_named() {
    let user = User::new();
    let json: Value = serde_json::from_str(&user.prints(&["show", "--json", "all"])).unwrap();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    assert_eq!(json["processors"], online.trim());
    // A set of a larger machine is no set of this one.
    let large = QUAD.replace("\"4-7\"", "\"4-7,4000\"");
    fs::write(user.0.join("quad.toml"), large).unwrap();
    user.make(&["far", "proc:4000"]);
    let said = user.refused(&["show", "all | far"], 2);
    assert_eq!(said, "'far' has proc:4000, which the machine lacks\n  all | far\n        ^^^\n");
}

#[test]
fn what_makes_no_set_is_pointed_at() {
    let user = User::new();
    user.make(&["web", "node:0", "--exclusive"]);
    let point = |set: &str| user.refused(&["show", "--machine", "quad.toml", set], 2);
    assert_eq!(
        point("web | cpu:7-9"),
        "the machine has no processor 8-9 (it has 0-7)\n  web | cpu:7-9\n            ^^^\n"
    );
    assert_eq!(point("wed"), "there is no set named 'wed'\n  wed\n  ^^^\n");
    assert_eq!(point("(web"), "this parenthesis is never closed\n  (web\n  ^\n");
    let unchanged = user.prints(&["list"]);
    for (arguments, sentence) in [
        (&["web", "node:1"][..], "there is a set named 'web' already"),
        (
            &["a-b", "node:1"],
            "'a-b' can't be the name of a set: '-' is neither a letter nor a digit, '_' or '.'",
        ),
        (&["local", "node:1"], "'local' can't be the name of a set: it has a meaning of its own"),
        (&["x", "node:0 - node:0"], "the set 'x' would be empty"),
        (
            &["x", "node:1", "--parent", "web"],
            "'web' doesn't contain proc:4-7|mem:1, so 'x' can't be a part of it",
        ),
        (&["x", "all", "--exclusive"], "'x' and 'web' are exclusive and would share proc:0-3|mem:0"),
        (&["x", "node:1", "--parent", "y"], "there is no set named 'y'"),
    ] {
        assert_eq!(user.refused_make(arguments), format!("{sentence}\n"));
    }
    assert_eq!(user.refused(&["remove", "wed"], 2), "there is no set named 'wed'\n");
    user.make(&["front", "cpu:0", "--parent", "web"]);
    assert_eq!(user.refused(&["remove", "web"], 2), "the set 'web' has parts ('front'): remove them first\n");
    user.prints(&["remove", "front"]);
    assert_eq!(user.prints(&["list"]), unchanged, "what is refused changes nothing");
    user.make(&["front", "cpu:0", "--parent", "web"]);
    user.prints(&["remove", "web", "--parts"]);
    assert!(user.prints(&["list"]).starts_with("no set has a name yet"));
}

#[test]
fn strange_words_reach_the_terminal_without_their_powers() {
    let user = User::new();
    assert_eq!(user.refused(&["remove", "a\u{1b}[2J\n"], 2), "there is no set named 'a\\u{1b}[2J\\n'\n");
    let said = user.refused_make(&["a\tb", "all"]);
    assert!(said.starts_with("'a\\tb' can't be the name of a set: '\\t' is neither"), "{said}");
    user.make(&["web", " node:0\n|\tnode:1\n"]);
    assert!(user.prints(&["list"]).ends_with("node:0 | node:1\n"));
    let said = user.refused(&[], 2);
    assert!(said.contains("list, show, make, remove") && said.matches('\n').count() == 1, "{said}");
}

#[test]
fn sets_made_at_the_same_time_are_all_there() {
    let user = User::new();
    let names: Vec<String> = (0..16).map(|number| format!("set{number:02}")).collect();
    let children = names
        .iter()
        .map(|name| user.command(&["make", "--machine", "quad.toml", name, "node:0"]).spawn().unwrap());
    for mut child in children.collect::<Vec<_>>() {
        assert!(child.wait().unwrap().success());
    }
    let json: Value = serde_json::from_str(&user.prints(&["list", "--json"])).unwrap();
    let found: Vec<&str> = json.as_array().unwrap().iter().map(|set| set["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
}

#[test]
fn what_a_killed_writer_leaves_behind_is_no_obstacle() {
    let user = User::new();
    user.make(&["web", "node:0"]);
    let unfinished = user.0.join("state/gondwana/rsets.toml.new");
    fs::write(&unfinished, "[rset.half").unwrap();
    assert!(user.prints(&["list"]).contains("web"));
    user.make(&["batch", "node:1"]);
    assert!(user.prints(&["list"]).contains("web") && !unfinished.exists());
}

#[test]
fn a_file_that_somebody_has_broken_is_named_with_the_line() {
    let user = User::new();
    user.make(&["web", "node:0"]);
    let file = user.0.join("state/gondwana/rsets.toml");
    let broken = fs::read_to_string(&file).unwrap().replace("\"0-3\"", "\"3-0\"");
    fs::write(&file, &broken).unwrap();
    let sentence = format!(
        "{} has no valid sets: line 2: rset.web.processors: the range 3-0 ends before it begins\n",
        file.display()
    );
    assert_eq!(user.refused(&["list"], 125), sentence);
    assert_eq!(user.refused(&["make", "x", "all"], 125), sentence);
    assert_eq!(fs::read_to_string(&file).unwrap(), broken, "a file that can't be read isn't replaced");
}

#[test]
fn places_for_the_file_are_found_or_missed_in_one_sentence() {
    let user = User::new();
    let mut at_home = user.command(&["make", "web", "all"]);
    succeeded(&at_home.env("XDG_STATE_HOME", "relative").env("HOME", &*user.0).output().unwrap());
    assert!(user.0.join(".local/state/gondwana/rsets.toml").exists());
    let nowhere = user.command(&["list"]).env_remove("XDG_STATE_HOME").output().unwrap();
    assert!(failed(&nowhere, 125).contains("neither XDG_STATE_HOME nor HOME is an absolute path\n"));
    fs::write(user.0.join("state"), "no folder").unwrap();
    let said = user.refused(&["make", "web", "all"], 125);
    assert!(said.contains("state/gondwana cannot be made: ") && said.matches('\n').count() == 1, "{said}");
}

#[test]
fn a_machine_that_cannot_be_is_named_with_line_and_field() {
    let user = User::new();
    fs::write(user.0.join("quad.toml"), QUAD.replace("\"4-7\"", "\"3-7\"")).unwrap();
    let said = user.refused_make(&["web", "all"]);
    assert_eq!(said, "quad.toml: line 8: node[1].processors: another node has processors 3 too\n");
    assert!(
        user.refused(&["show", "all", "--machine", "missing.toml"], 125)
            .starts_with("missing.toml cannot be read")
    );
}
