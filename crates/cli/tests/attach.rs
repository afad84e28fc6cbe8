//! `gondwana monitor`: recordings of running runs.

mod common;

use common::exchange::Exchange;
use common::process::Process;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_recording::{Recording, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

fn monitor_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(&whole().gondwana);
    command.arg("monitor").args(arguments);
    command
}

fn monitor(exchange: &Exchange, arguments: &[&str]) -> Ran {
    let pid = exchange.pid();
    run(monitor_command(&[&[pid.as_str()], arguments].concat()).current_dir(exchange.folder()), LIMIT)
}

/// The output of a successful command.
fn said(ran: &Ran) -> &str {
    assert!(ran.status.unwrap().success(), "{}", ran.errors);
    assert_eq!(ran.errors, "");
    &ran.output
}

/// The command must fail with this status and one sentence that contains the text.
fn refuses(ran: &Ran, status: i32, text: &str) {
    assert_eq!(ran.status.unwrap().code(), Some(status), "{}", ran.errors);
    assert!(ran.errors.contains(text) && ran.errors.matches('\n').count() == 1, "{}", ran.errors);
    assert_eq!(ran.output, "");
}

/// A complete recording of two nodes, with fetches.
fn recorded(file: &Path) -> Recording {
    let recording = read(File::open(file).unwrap()).unwrap();
    assert_eq!(recording.cut, None);
    assert_eq!((recording.run.nodes, recording.started.len(), recording.ended.len()), (2, 2, 2));
    assert!(recording.run.executable.ends_with("/exchange"), "{:?}", recording.run);
    // The home of a page need not fetch it.
    assert!(
        recording.rows().any(|(_, _, row)| row.kind.is_fetch() && row.bytes > 0),
        "{:?}",
        recording.intervals
    );
    recording
}

/// Waits until both nodes have recorded something.
fn until_something_is_in(file: &Path) {
    let start = Instant::now();
    let nodes =
        |recording: &Recording| -> BTreeSet<u16> { recording.rows().map(|(node, _, _)| node).collect() };
    while !File::open(file).is_ok_and(|file| read(file).is_ok_and(|recording| nodes(&recording).len() == 2)) {
        assert!(start.elapsed() < LIMIT, "nothing is recorded");
        std::thread::yield_now();
    }
}

#[test]
fn a_run_is_recorded_from_the_middle_as_often_as_one_likes() {
    let hosts = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"];
    for options in [&["-n", "2"][..], &hosts] {
        let mut exchange = Exchange::start(options);
        let file = exchange.file("exchange.gwr");
        let text = monitor(&exchange, &[]);
        assert!(said(&text).starts_with(&format!("recording in {}: ", file.display())), "{}", text.output);
        refuses(&monitor(&exchange, &["--record", "other.gwr"]), 125, "is recorded already, in /");
        assert!(!exchange.file("other.gwr").exists());
        until_something_is_in(&file);
        let text = monitor(&exchange, &["--stop"]);
        assert!(said(&text).starts_with(&format!("recorded: {} (", file.display())), "{}", text.output);
        recorded(&file);
        refuses(&monitor(&exchange, &["--stop"]), 125, "is not being recorded");
        said(&monitor(&exchange, &["--for", "1", "--record", "second.gwr"]));
        let second = recorded(&exchange.file("second.gwr"));
        let last = second.ended.iter().map(|(_, end)| end.time).max().unwrap();
        assert!(last > 500_000_000, "{last}");
        // The end of the run ends a recording as well, which is that of the last part only.
        said(&monitor(&exchange, &[]));
        until_something_is_in(&file);
        exchange.end();
        recorded(&file);
        assert!(exchange.file("exchange.gwr.old").exists());
    }
}

/// What nodes of one computer have in common, no recording shows.
#[test]
fn a_recording_says_that_it_lacks_what_is_common() {
    let mut exchange = Exchange::start(&["-n", "2", "--common-after", "1"]);
    let text = monitor(&exchange, &["--record", "lacks.gwr"]);
    let lines: Vec<&str> = said(&text).lines().collect();
    assert!(lines[0].ends_with("start the run with --monitor or --common-after 0"), "{}", text.output);
    assert!(lines[1].starts_with("recording in "), "{}", text.output);
    exchange.end();
}

#[test]
fn a_run_that_is_recorded_from_its_start_can_be_stopped_and_goes_on() {
    let mut exchange = Exchange::start(&["-n", "2", "--monitor=all.gwr"]);
    refuses(&monitor(&exchange, &[]), 125, "is recorded already");
    until_something_is_in(&exchange.file("all.gwr"));
    said(&monitor(&exchange, &["--stop"]));
    recorded(&exchange.file("all.gwr"));
    exchange.end();
}

/// The filters of both nodes, once each node has counted something.
fn counted_by_both(exchange: &Exchange) -> Vec<Value> {
    let start = Instant::now();
    loop {
        let text = monitor(exchange, &["--counters", "--json"]);
        let mut json: Value = serde_json::from_str(said(&text)).unwrap();
        let Value::Array(filters) = json["filters"].take() else { panic!("{}", text.output) };
        let has_counted = |node: u16| {
            let mut own = filters.iter().filter(|filter| filter["node"] == node);
            own.any(|filter| filter["counters"].as_array().is_some_and(|counters| !counters.is_empty()))
        };
        if has_counted(0) && has_counted(1) {
            return filters;
        }
        assert!(start.elapsed() < LIMIT, "nothing is counted: {}", text.output);
    }
}

#[test]
fn counters_of_filters_are_shown_while_the_run_goes_on() {
    for options in
        [&["-n", "2"][..], &["-n", "2", "--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"]]
    {
        let mut exchange = Exchange::start(options);
        refuses(&monitor(&exchange, &["--counters"]), 125, "has no filters");
        let filters = ["--filter", "range=data,kinds=fetches+ahead+diff", "--filter", "range=heap,unit=2M"];
        said(&monitor(&exchange, &filters));
        let filters = counted_by_both(&exchange);
        let text = monitor(&exchange, &["--counters"]);
        assert!(said(&text).starts_with("node  range "), "{}", text.output);
        // They go with the recording, which has them.
        said(&monitor(&exchange, &["--stop"]));
        assert_eq!(recorded(&exchange.file("exchange.gwr")).banks.len(), filters.len());
        refuses(&monitor(&exchange, &["--counters"]), 125, "has no filters");
        exchange.end();
    }
}

#[test]
fn whoever_waits_for_a_recording_hears_that_the_run_has_ended() {
    let mut exchange = Exchange::start(&["-n", "2"]);
    let pid = exchange.pid();
    let mut command = monitor_command(&[&pid, "--for", "1000"]);
    command.current_dir(exchange.folder()).stdout(Stdio::piped());
    let waiting = command.spawn().unwrap();
    while !exchange.file("exchange.gwr").exists() {
        std::thread::yield_now();
    }
    exchange.end();
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("the run has ended, or its recording: /"), "{text}");
}

#[test]
fn an_interrupted_wait_ends_the_recording() {
    let mut exchange = Exchange::start(&["-n", "2"]);
    let pid = exchange.pid();
    let mut command = monitor_command(&[&pid, "--for", "1000"]);
    command.current_dir(exchange.folder()).stdout(Stdio::piped());
    let waiting = command.spawn().unwrap();
    while !exchange.file("exchange.gwr").exists() {
        std::thread::yield_now();
    }
    Process::open(waiting.id()).unwrap().signal(libc::SIGINT);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("recorded: /"));
    refuses(&monitor(&exchange, &["--stop"]), 125, "is not being recorded");
    exchange.end();
}

#[test]
fn mistakes_get_a_sentence_and_leave_the_run_alone() {
    let mut exchange = Exchange::start(&["-n", "2"]);
    refuses(&monitor(&exchange, &["--record", "/nowhere/x.gwr"]), 125, "/nowhere/x.gwr cannot be written");
    refuses(&monitor(&exchange, &["--for", "0"]), 2, "--for 0: give a number");
    refuses(&monitor(&exchange, &["--stop", "--for", "1"]), 2, "cannot be used with");
    refuses(
        &monitor(&exchange, &["--filter", "range=stack"]),
        2,
        "--filter range=stack: \"stack\" is no range",
    );
    let overlapping = ["--filter", "range=0x1000-0x3000", "--filter", "range=0x2000-0x4000"];
    refuses(&monitor(&exchange, &overlapping), 2, "0x1000-0x3000");
    assert!(!exchange.file("exchange.gwr").exists());
    refuses(&run(&mut monitor_command(&["2147483647"]), LIMIT), 125, "there is no process 2147483647");
    refuses(
        &run(&mut monitor_command(&[&std::process::id().to_string()]), LIMIT),
        125,
        "is no run on several",
    );
    let pid = exchange.pid();
    let mut other = monitor_command(&[&pid, "--stop"]);
    if other.uid(65534).gid(65534).current_dir("/").output().is_ok() {
        refuses(&run(&mut other, LIMIT), 125, "only that user and root can see it");
    }
    exchange.end();
}
