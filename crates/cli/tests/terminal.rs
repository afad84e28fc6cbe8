//! Runs on a terminal: the line that shows progress, and the keys that end or stop a run.

mod common;

use common::endless::children;
use common::folder::Folder;
use common::installation::Installation;
use common::process::Process;
use common::screen::Terminal;
use common::whole::{LIMIT, whole};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

/// How long anything may be left of a run that was interrupted.
const SOON: Duration = Duration::from_secs(2);

const INTERRUPT: &[u8] = b"\x03";
const STOP: &[u8] = b"\x13";
const CONTINUE: &[u8] = b"\x11";

/// Two hosts, which are both this computer.
const HOSTS: [&str; 4] = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"];

#[test]
fn a_line_shows_progress_and_the_interrupt_key_ends_everything() {
    let folder = Folder::new();
    folder.compile("silent");
    for options in [&["-n", "2"][..], &HOSTS] {
        let mut command = whole().run(&folder, &[options, &["--", "./silent"]].concat());
        let (mut terminal, mut launcher) = Terminal::start(&mut command);
        terminal.shows("all have started", LIMIT);
        terminal.shows("2 of 2 nodes up, ", LIMIT);
        terminal.press(INTERRUPT);
        // The terminal itself shows the key. All processes of the run had it open. Shells call this end status 130.
        assert_eq!(terminal.end(SOON), "all have started\n^C", "{options:?}");
        assert_eq!(launcher.wait().unwrap().signal(), Some(libc::SIGINT), "{options:?}");
    }
}

#[test]
fn a_run_is_followed_while_the_terminal_is_stopped() {
    let folder = Folder::new();
    folder.compile("silent");
    let (mut terminal, mut launcher) =
        Terminal::start(&mut whole().run(&folder, &["-n", "2", "--", "./silent"]));
    terminal.shows("2 of 2 nodes up, ", LIMIT);
    terminal.press(STOP);
    // The line would have been drawn again in that time.
    std::thread::sleep(Duration::from_secs(1));
    let nodes: Vec<_> = children(launcher.id()).into_iter().map(|pid| Process::open(pid).unwrap()).collect();
    nodes[0].signal(libc::SIGKILL);
    assert!(nodes.iter().all(|node| node.ends_within(SOON)));
    terminal.press(CONTINUE);
    terminal.end(SOON);
    assert_eq!(launcher.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn output_and_the_line_of_progress_do_not_mix() {
    let folder = Folder::new();
    // More lines than the terminal has rows, and one that is not complete when the line of progress appears.
    let script =
        "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done; printf partial; read x; echo \" and $x\"";
    let mut command = whole().run(&folder, &["-n", "2", "--", "sh", "-c", script]);
    let (mut terminal, mut launcher) = Terminal::start(&mut command);
    terminal.shows("partial", LIMIT);
    terminal.shows("line 9\npartial\n[", LIMIT);
    terminal.shows("2 of 2 nodes up, ", LIMIT);
    terminal.press(b"more\n");
    let shown = terminal.end(LIMIT);
    assert!(shown.ends_with("line 8\nline 9\npartialmore\n and more"), "{shown}");
    assert!(!shown.contains("nodes up"), "{shown}");
    assert!(launcher.wait().unwrap().success());
}

#[test]
fn a_program_that_handles_the_interrupt_key_ends_as_it_likes() {
    let here = Installation::new();
    // A shell that is about to read when the signal comes would go on reading.
    let script = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.1; done";
    for options in [&["-n", "2"][..], &HOSTS] {
        let mut command = here.command(&[&["run"], options, &["sh", "-c", script]].concat());
        let (mut terminal, mut launcher) = Terminal::start(&mut command);
        terminal.shows("ready", LIMIT);
        terminal.press(INTERRUPT);
        let shown = terminal.end(SOON);
        assert_eq!(shown.matches("caught").count(), 1, "{options:?}: {shown}");
        assert_eq!(launcher.wait().unwrap().code(), Some(3), "{options:?}");
    }
}

#[test]
fn an_interrupted_benchmark_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut command = Command::new(&whole().gondwana);
    command.args(["bench", "--only", "barrier"]).env("TMPDIR", &*folder);
    let (mut terminal, mut bench) = Terminal::start(&mut command);
    // Everything is compiled then.
    terminal.shows("1 of 5", LIMIT);
    assert_eq!(fs::read_dir(&*folder).unwrap().count(), 1);
    terminal.press(INTERRUPT);
    terminal.end(SOON);
    assert_eq!(bench.wait().unwrap().signal(), Some(libc::SIGINT));
    assert_eq!(fs::read_dir(&*folder).unwrap().count(), 0);
}

#[test]
fn a_line_leaves_no_trace_and_is_for_terminals_only() {
    let folder = Folder::new();
    let ran = common::whole::run(&mut whole().run(&folder, &["-n", "2", "--", "sleep", "1.5"]), LIMIT);
    assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("", ""));
    let mut command = whole().run(&folder, &["-n", "2", "--", "sleep", "1.5"]);
    let (mut terminal, mut launcher) = Terminal::start(&mut command);
    assert_eq!(terminal.end(LIMIT), "");
    assert!(terminal.written.contains("nodes up"), "{}", terminal.written);
    assert!(launcher.wait().unwrap().success());
}
