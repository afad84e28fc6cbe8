//! `gondwana stack`: what the threads of a run that hangs are doing, as the command tells it.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, run, whole};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A run that hangs.
struct Hanging {
    launcher: Child,
    _folder: Folder,
}

impl Hanging {
    /// Starts the program in one of its ways, and waits until its threads have started.
    fn start(options: &[&str], how: &str) -> Self {
        let folder = Folder::new();
        folder.compile("hangs");
        let mut command = whole().run(&folder, &[options, &["--", "./hangs", how]].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(launcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "all have started\n");
        Self { launcher, _folder: folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&whole().gondwana);
        command.arg("stack").arg(self.launcher.id().to_string()).args(arguments);
        command
    }

    /// The text, once it holds all of these parts: threads may be on their way to where they hang.
    fn text_with(&self, parts: &[&str]) -> String {
        let start = Instant::now();
        loop {
            let ran = run(&mut self.command(&[]), LIMIT);
            assert!(ran.status.unwrap().success(), "{}", ran.errors);
            if parts.iter().all(|part| ran.output.contains(part)) {
                return ran.output;
            }
            assert!(start.elapsed() < LIMIT, "{parts:?} in\n{}", ran.output);
        }
    }

    fn json(&self) -> Value {
        let ran = run(&mut self.command(&["--json"]), LIMIT);
        serde_json::from_str(&ran.output).unwrap()
    }

    /// The first line on standard error.
    fn says(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.launcher.stderr.take().unwrap()).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// The line of the source that has this text.
fn line_of(text: &str) -> usize {
    let source = include_str!("programs/hangs.c");
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn a_ring_of_two_mutexes_over_two_nodes_is_a_deadlock() {
    let mut run = Hanging::start(&["-n", "2"], "mutexes");
    let text = run.text_with(&[
        "DEADLOCK: thread 1 (node 1) waits for mutex accounts[1].lock",
        "held by thread 2 (node 0), which waits for mutex accounts[0].lock",
    ]);
    let place = "transfer at ";
    let line = format!("hangs.c:{}", line_of("the second lock"));
    assert!(text.contains(" in libgondwana.so (the runtime)"), "{text}");
    assert_eq!(text.matches(place).count(), 2, "{text}");
    assert_eq!(text.matches(&line).count(), 2, "{text}");
    assert!(
        text.contains("thread 0 on node 0") && text.contains("waits for the end of thread 1 (node 1)"),
        "{text}"
    );
    assert!(text.contains("    main at "), "{text}");
    let json = run.json();
    assert_eq!(json["deadlocks"][0][0]["awaited"], "mutex");
    assert_eq!(json["threads"].as_array().unwrap().len(), 3, "{json:#}");
    let said = run.says();
    let expected = format!(
        "gondwana: no thread of the program can go on: all 3 threads wait: a deadlock, as threads 1, 2 wait for each other; \
         gondwana stack {} shows where\n",
        run.launcher.id()
    );
    assert_eq!(said, expected);
}

#[test]
fn the_thread_that_is_missing_at_a_barrier_is_named() {
    let run = Hanging::start(&["-n", "2", "--fabric", "tcp"], "barrier");
    let text = run.text_with(&["waits for barrier gate", "thread 2 (node 0) is missing"]);
    assert!(text.contains("is in read of descriptor") && text.contains("    comes at "), "{text}");
    assert!(!text.contains("DEADLOCK"), "{text}");
}

#[test]
fn threads_in_a_condition_that_nobody_signals_are_told_of() {
    let mut run = Hanging::start(&["-n", "2"], "condition");
    let text = run.text_with(&["waits for condition news", "nobody is left to go on"]);
    assert_eq!(text.matches("waits for condition news").count(), 2, "{text}");
    assert!(
        run.says().contains(
            "no thread of the program can go on: all 3 threads wait for another one; gondwana stack"
        )
    );
}

#[test]
fn a_thread_that_spins_has_a_stack_and_another_that_reads_is_no_deadlock() {
    for (how, parts) in [
        ("spin", ["waits for condition news", "(task", "    spins at "]),
        ("input", ["waits for condition news", "is in read of descriptor 0", "    sleeps at "]),
    ] {
        let run = Hanging::start(&["-n", "2"], how);
        let text = run.text_with(&parts);
        assert!(!text.contains("DEADLOCK") && !text.contains("nobody is left"), "{text}");
    }
}

#[test]
fn agents_of_other_hosts_read_stacks_too() {
    let here = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}", "-n", "2"];
    let run = Hanging::start(&here, "mutexes");
    let text = run.text_with(&["DEADLOCK: thread 1 (node 1) waits for mutex accounts[1].lock"]);
    assert_eq!(text.matches("transfer at ").count(), 2, "{text}");
}

#[test]
fn a_crash_report_has_the_stack() {
    let folder = Folder::new();
    folder.compile("hangs");
    let hosts = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"];
    for options in [&[][..], &hosts] {
        let ran = run(
            &mut whole().run(&folder, &[options, &["-n", "2", "--", "./hangs", "crash"]].concat()),
            LIMIT,
        );
        let mut lines = ran.errors.lines();
        let first = lines.next().unwrap_or_default();
        assert!(
            first.starts_with("gondwana: node 1, thread 1 died of SIGSEGV at address 0x0"),
            "{}",
            ran.errors
        );
        let (store, caller) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let place = format!("hangs.c:{}", line_of("the crash"));
        assert!(store.starts_with("    store at ") && store.ends_with(&place), "{}", ran.errors);
        assert!(caller.starts_with("    crashes at ") && lines.next().is_none(), "{}", ran.errors);
    }
}

#[test]
fn what_is_no_run_is_said() {
    let own = std::process::id().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gondwana"));
    let ran = run(command.args(["stack", &own]), LIMIT);
    assert!(ran.errors.contains("is no run on several nodes"), "{}", ran.errors);
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_gondwana"));
    let ran = run(wrong.args(["stack", "nothing"]), LIMIT);
    assert_eq!(ran.status.unwrap().code(), Some(2), "{}", ran.errors);
}
