//! Files that commands write into folders of other users, and untrusted contents of files.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_plan::Plan;
use gondwana_recording::{FILE_HEADER, LAUNCHER, RunRecord, encode, read};
use gondwana_rset::Registry;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Runs the command in a folder by a script of the shell, where `gondwana` is the command.
fn script(folder: &Path, script: &str) -> Ran {
    let mut command = Command::new("bash");
    let name = format!("umask 022\ngondwana() {{ '{}' \"$@\"; }}\n{script}", whole().gondwana.display());
    run(command.args(["-c", &name]).current_dir(folder), LIMIT)
}

fn succeeds(folder: &Path, text: &str) -> Ran {
    let ran = script(folder, text);
    assert!(ran.status.unwrap().success(), "{text}: {}", ran.errors);
    ran
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn links_in_the_working_directory_are_not_followed() {
    let folder = Folder::new();
    folder.compile("turns");
    fs::write(folder.join("victim"), "precious").unwrap();
    for name in ["turns.gwr", "turns.gwr.old", "stats.json", "page.html", "bench.json"] {
        symlink("victim", folder.join(name)).unwrap();
    }
    succeeds(&folder, "gondwana run -n 2 --monitor --stats=stats.json -- ./turns x");
    succeeds(&folder, "gondwana report turns.gwr --html=page.html");
    assert_eq!(fs::read(folder.join("victim")).unwrap(), b"precious");
    for name in ["turns.gwr", "stats.json", "page.html"] {
        let file = fs::symlink_metadata(folder.join(name)).unwrap();
        assert!(file.is_file(), "{name}");
        // They have the command line and paths.
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let recording = || read(File::open(folder.join("turns.gwr")).unwrap()).unwrap();
    assert_eq!((recording().cut, recording().ended.len()), (None, 2));
    serde_json::from_slice::<serde_json::Value>(&fs::read(folder.join("stats.json")).unwrap()).unwrap();

    // An existing file is renamed or replaced atomically.
    fs::set_permissions(folder.join("turns.gwr"), fs::Permissions::from_mode(0o644)).unwrap();
    let first = fs::read(folder.join("turns.gwr")).unwrap();
    fs::write(folder.join("stats.json"), vec![b'x'; 1 << 20]).unwrap();
    succeeds(&folder, "gondwana run -n 2 --monitor --stats=stats.json -- ./turns x");
    assert_eq!(fs::read(folder.join("turns.gwr.old")).unwrap(), first);
    let modes = ["turns.gwr", "stats.json"]
        .map(|name| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o600; 2]);
    assert!(fs::metadata(folder.join("stats.json")).unwrap().len() < 1 << 20);
    assert_eq!(recording().cut, None);
    assert_eq!(fs::read(folder.join("victim")).unwrap(), b"precious");
    // Nothing else is left.
    let left = ["bench.json", "page.html", "stats.json", "turns", "turns.gwr", "turns.gwr.old", "victim"];
    assert_eq!(names(&folder), left);
}

#[test]
fn statistics_go_to_devices_pipes_and_descriptors() {
    let folder = Folder::new();
    fs::write(folder.join("before"), "before\n").unwrap();
    let program = "-- /bin/echo done";
    let has_both = |text: &str| {
        assert!(text.contains("done\n") && text.contains("\"node_count\": 1"), "{text}");
    };
    succeeds(&folder, &format!("gondwana run -n 1 --stats=/dev/null {program}"));
    let ran = succeeds(&folder, &format!("gondwana run -n 1 --stats=/dev/stderr {program}"));
    has_both(&(ran.output + &ran.errors));
    // A pipe of the shell, a pipe with a name, and the end of a file.
    succeeds(&folder, &format!("gondwana run -n 1 --stats=>(cat >piped) {program} >>piped.out; wait $!"));
    has_both(&(read_text(&folder, "piped.out") + &read_text(&folder, "piped")));
    succeeds(
        &folder,
        &format!("mkfifo pipe; cat pipe >named & gondwana run -n 1 --stats=pipe {program} >named.out; wait"),
    );
    has_both(&(read_text(&folder, "named.out") + &read_text(&folder, "named")));
    succeeds(&folder, &format!("gondwana run -n 1 --stats=/dev/stdout {program} >>before"));
    let text = read_text(&folder, "before");
    assert!(text.starts_with("before\n"), "{text}");
    has_both(&text);
    let refused = script(&folder, &format!("gondwana run -n 1 --stats=. {program}"));
    assert_eq!(refused.errors, "gondwana: --stats: . cannot be written: Is a directory (os error 21)\n");
}

fn read_text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Texts of a file are shown without control characters, and are only comments in a plan.
#[test]
fn control_characters_of_a_recording_reach_no_terminal_and_no_plan() {
    let folder = Folder::new();
    let run = RunRecord {
        command: vec!["./a\u{1b}[2J\u{9b}31m\r\u{7f}\n[[variable]]\nname = \"x\"\u{202e}".to_owned()],
        plan: "/nowhere/\u{1b}[2J.toml".to_owned(),
        nodes: 2,
        page_bytes: 4096,
        ..RunRecord::default()
    };
    let file = [&FILE_HEADER[..], &encode(LAUNCHER, &run)].concat();
    fs::write(folder.join("a.gwr"), file).unwrap();
    let machine = gondwana_control::machine(2, 1, 1 << 30);
    for command in ["advise a.gwr", "advise --json a.gwr", "report a.gwr", "report --json a.gwr"] {
        let ran = succeeds(&folder, &format!("gondwana {command}"));
        let said = ran.output.clone() + &ran.errors;
        let speaks = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
        assert!(!said.contains(speaks), "{command}: {said:?}");
        if command == "advise a.gwr" {
            let plan = Plan::parse(&ran.output, &machine, &Registry::default());
            assert!(plan.is_ok_and(|plan| plan.is_empty()), "{}", ran.output);
        }
        if command == "advise --json a.gwr" {
            let json: serde_json::Value = serde_json::from_str(&ran.output).unwrap();
            assert_eq!(json["command"][0], run.command[0], "programs read what was recorded");
        }
    }
    let missing = script(&folder, "gondwana report $'\\e[2Jmissing'");
    assert!(!missing.errors.contains('\u{1b}') && missing.errors.contains("missing"), "{}", missing.errors);
}
