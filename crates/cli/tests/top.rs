//! `gondwana top`: the present rates of a run.

mod common;

use common::exchange::Exchange;
use common::process::Process;
use common::screen::Terminal;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_recording::read;
use serde_json::Value;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Instant;

fn top_command(exchange: &Exchange, arguments: &[&str]) -> Command {
    let mut command = Command::new(&whole().gondwana);
    command.arg("top").arg(exchange.pid()).args(arguments);
    command
}

fn top(exchange: &Exchange, arguments: &[&str]) -> Ran {
    run(&mut top_command(exchange, arguments), LIMIT)
}

/// Waits until the nodes record no more.
fn is_left_alone(exchange: &Exchange) {
    let start = Instant::now();
    loop {
        let mut topo = Command::new(&whole().gondwana);
        let ran = run(topo.args(["topo", "--json", "--run", &exchange.pid()]), LIMIT);
        let json: Value = serde_json::from_str(&ran.output).unwrap();
        if json["monitored"] == false {
            return;
        }
        assert!(start.elapsed() < LIMIT, "{json:#}");
    }
}

/// Shows a run on a terminal until received pages are visible.
fn shown(exchange: &Exchange) -> (Terminal, Child) {
    let (mut terminal, child) = Terminal::start(&mut top_command(exchange, &["--interval", "0.5"]));
    terminal.shows("node  host", LIMIT);
    terminal.until("requests", LIMIT, |text| text.contains("diff "));
    assert!(!terminal.is_as_usual());
    (terminal, child)
}

#[test]
fn one_interval_is_printed_where_there_is_no_terminal() {
    let mut exchange = Exchange::start(&["-n", "2"]);
    let ran = top(&exchange, &[]);
    assert_eq!((ran.status.unwrap().code(), ran.errors.as_str()), (Some(0), ""));
    let title = format!("./exchange (process {}) for ", exchange.pid());
    assert!(ran.output.starts_with(&title), "{}", ran.output);
    for part in ["\nnode  host", "diff ", "\nrequests", "\nthread  node  fetches\n"] {
        assert!(ran.output.contains(part), "{part}: {}", ran.output);
    }
    is_left_alone(&exchange);

    let ran = top(&exchange, &["--json", "--interval", "0.5"]);
    let json: Value = serde_json::from_str(&ran.output).unwrap();
    let sum =
        |what: &str| json["nodes"].as_array().unwrap().iter().map(|node| node[what].as_f64().unwrap()).sum();
    for what in ["faults", "fetches", "diffs", "bytes_in", "bytes_out", "messages"] {
        let sum: f64 = sum(what);
        assert!(sum > 0.0, "{what}: {json:#}");
    }
    assert!(json["interval"].as_f64().unwrap() > 0.0, "{json:#}");
    assert_eq!(json["nodes"][1]["fetches"].as_f64().map(|rate| rate > 0.0), Some(true), "{json:#}");
    assert!(json["kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] == "diff"), "{json:#}");
    assert!(json["areas"][0]["requests"].as_f64().unwrap() > 0.0, "{json:#}");
    is_left_alone(&exchange);
    exchange.end();
}

#[test]
fn a_terminal_shows_the_run_until_a_key_is_pressed_and_is_as_before() {
    let mut exchange = Exchange::start(&["-n", "2"]);
    let (mut terminal, mut child) = shown(&exchange);
    terminal.resize(4, 30);
    terminal.until("less", LIMIT, |text| {
        text.lines().count() <= 4 && text.lines().all(|line| line.chars().count() <= 30)
    });
    terminal.press(b"xq");
    assert_eq!(terminal.end(LIMIT), "");
    assert!(child.wait().unwrap().success());
    assert!(terminal.is_as_usual());
    is_left_alone(&exchange);

    // The interrupt key, and a signal.
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (mut terminal, mut child) = shown(&exchange);
        match signal {
            libc::SIGINT => terminal.press(b"\x03"),
            _ => Process::open(child.id()).unwrap().signal(signal),
        }
        terminal.end(LIMIT);
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        assert!(terminal.is_as_usual());
        is_left_alone(&exchange);
    }

    // The end of the run.
    let (mut terminal, mut child) = shown(&exchange);
    exchange.end();
    assert_eq!(terminal.end(LIMIT), format!("the run of process {} has ended", exchange.pid()));
    assert!(child.wait().unwrap().success());
    assert!(terminal.is_as_usual());
}

#[test]
fn a_stopped_view_gives_the_terminal_back_until_it_goes_on() {
    let mut exchange = Exchange::start(&["-n", "2"]);
    let (mut terminal, mut child) = shown(&exchange);
    let process = Process::open(child.id()).unwrap();
    process.signal(libc::SIGTSTP);
    let (pid, mut status) = (child.id().cast_signed(), 0);
    // SAFETY: the kernel writes one status; the process is a child of this one, and only stopped.
    let stopped = unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) };
    assert!(stopped == pid && libc::WIFSTOPPED(status));
    terminal.until("nothing", LIMIT, str::is_empty);
    assert!(terminal.is_as_usual());
    process.signal(libc::SIGCONT);
    terminal.shows("node  host", LIMIT);
    terminal.press(b"q");
    terminal.end(LIMIT);
    assert!(child.wait().unwrap().success());
    exchange.end();
}

#[test]
fn a_recording_goes_on_while_others_look() {
    let hosts = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}", "--monitor=all.gwr"];
    for options in [&["-n", "2", "--monitor=all.gwr"][..], &hosts] {
        let mut exchange = Exchange::start(options);
        let ran = top(&exchange, &["--once", "--interval", "0.5"]);
        assert!(ran.output.contains(", recorded in all.gwr\n"), "{}{}", ran.output, ran.errors);
        exchange.end();
        let recording = read(File::open(exchange.file("all.gwr")).unwrap()).unwrap();
        assert_eq!((recording.cut, recording.ended.len()), (None, 2));
    }
}

#[test]
fn mistakes_get_a_sentence() {
    let exchange = Exchange::start(&["-n", "2"]);
    let ran = top(&exchange, &["--interval", "0"]);
    assert_eq!(ran.status.unwrap().code(), Some(2));
    assert_eq!(ran.errors, "gondwana: --interval 0: give a number of seconds from 0.5 to 3600\n");
    let mut command = Command::new(&whole().gondwana);
    let ran = run(command.args(["top", "2147483647"]), LIMIT);
    assert_eq!(ran.status.unwrap().code(), Some(125));
    assert!(ran.errors.contains("there is no process 2147483647"), "{}", ran.errors);
}
