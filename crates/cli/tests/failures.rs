//! Runs that fail: they end at once and completely, and print one line with the reason.

mod common;

use common::endless::Endless;
use common::folder::Folder;
use common::process::Process;
use common::waiting::Waiting;
use common::whole::{LIMIT, run, whole};
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long anything may be left of a run that has failed.
const SOON: Duration = Duration::from_secs(2);

const FABRICS: [&str; 2] = ["shm", "tcp"];

#[test]
fn a_killed_node_ends_the_run() {
    for fabric in FABRICS {
        for victim in 0..3 {
            let run = Endless::start(&["-n", "3", "--fabric", fabric]);
            assert_eq!(run.nodes.len(), 3);
            run.node(victim).signal(libc::SIGKILL);
            let (said, status) = run.end(SOON);
            assert_eq!(said, format!("gondwana: node {victim} was killed by SIGKILL\n"), "{fabric}");
            assert_eq!(status.signal(), Some(libc::SIGKILL), "{fabric}");
        }
    }
}

#[test]
fn nothing_survives_a_killed_launcher() {
    for fabric in FABRICS {
        let mut run = Endless::start(&["-n", "4", "--fabric", fabric]);
        assert_eq!(run.nodes.len(), 4);
        run.launcher.kill().unwrap();
        let (said, status) = run.end(SOON);
        assert_eq!(said, "", "{fabric}");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
}

/// A run that waits, its standard error, and the process of its node 1.
fn waiting(options: &[&str]) -> (Waiting, BufReader<PipeReader>, Process) {
    let (said, to_say) = std::io::pipe().unwrap();
    let waiting = Waiting::start_with(options, |command, _| {
        command.stderr(to_say);
    });
    let process = waiting.json_when_up()["nodes"][1]["process"].as_u64().unwrap();
    (waiting, BufReader::new(said), Process::open(process.try_into().unwrap()).unwrap())
}

const HOSTS: [&str; 4] = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"];

#[test]
fn a_stopped_node_is_named_and_a_stopped_job_is_nobodys_business() {
    let runs = [&["-n", "2"][..], &HOSTS];
    let [one, other] = runs.map(waiting);
    let jobs = runs.map(waiting);
    for (job, ..) in &jobs {
        // As the stop key of the terminal.
        Process::open(job.pid()).unwrap().signal(libc::SIGTSTP);
    }
    for (_, _, node) in [&one, &other] {
        node.signal(libc::SIGSTOP);
    }
    for ((waiting, mut said, node), place) in [(one, ""), (other, " on host b")] {
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let (pid, there) = (node.pid, if place.is_empty() { "" } else { " there" });
        let sentence = format!(
            "gondwana: node 1 (process {pid}{place}) is stopped and the run waits for it: continue it{there} (kill -CONT {pid})\n"
        );
        assert_eq!(line, sentence);
        node.signal(libc::SIGCONT);
        line.clear();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "gondwana: node 1 goes on\n");
        waiting.end();
        line.clear();
        said.read_to_string(&mut line).unwrap();
        assert_eq!(line, "");
    }
    for (job, mut said, _) in jobs {
        // The launcher was stopped as long as the node.
        Process::open(job.pid()).unwrap().signal(libc::SIGCONT);
        job.json_when_up();
        job.end();
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert_eq!(text, "");
    }
}

/// Waits until a process has been sent a signal that it blocks.
fn until_pending(process: &Process, signal: i32) {
    let is_pending = || {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        u64::from_str_radix(set.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
    };
    let start = Instant::now();
    while !is_pending() {
        assert!(start.elapsed() < SOON, "signal {signal} does not arrive");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_that_blocks_signals_is_ended_by_force_when_asked_again() {
    let run = Endless::start_program("stubborn", &["-n", "2"]);
    let launcher = Process::open(run.launcher.id()).unwrap();
    for signal in [libc::SIGTERM, libc::SIGINT] {
        launcher.signal(signal);
        until_pending(&run.nodes[0], signal);
    }
    launcher.signal(libc::SIGTERM);
    let (said, status) = run.end(SOON);
    assert_eq!(said, "gondwana: the program blocks SIGTERM: ended by force\n");
    assert_eq!(status.signal(), Some(libc::SIGTERM));
}

/// The connections between nodes that a process has open.
fn connections(process: &Process) -> Vec<TcpStream> {
    let numbers = fs::read_dir(format!("/proc/{}/fd", process.pid)).unwrap();
    let numbers = numbers.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let copies = numbers.filter_map(|number| process.descriptor(number)).map(TcpStream::from);
    copies.filter(|socket| socket.peer_addr().is_ok()).collect()
}

#[test]
fn a_lost_connection_ends_the_run() {
    let run = Endless::start(&["-n", "3", "--fabric", "tcp"]);
    let connections = connections(&run.nodes[1]);
    assert_eq!(connections.len(), 2, "one to each of the others");
    connections[0].shutdown(Shutdown::Both).unwrap();
    let (said, status) = run.end(SOON);
    assert!(said.contains("has lost its connection to node") && said.matches('\n').count() == 1, "{said}");
    assert!(!status.success());
}

#[test]
fn a_crash_is_the_programs_own_and_says_where() {
    let programs = &whole().programs;
    for fabric in FABRICS {
        // The first thread that main starts goes to node 1, the second to node 0.
        for (threads, node) in [("1", 1), ("2", 0)] {
            let options = |program| ["-n", "2", "--fabric", fabric, "--", program, "-p", threads];
            let ran = run(&mut whole().run(programs, &options("conform/crash_wild")), LIMIT);
            let line = format!("gondwana: node {node}, thread ");
            assert!(ran.errors.starts_with(&line), "{}", ran.errors);
            assert!(ran.errors.contains(" died of SIGSEGV at address 0x123450 ("), "{}", ran.errors);
            let mut lines = ran.errors.lines();
            assert!(lines.next().is_some_and(|line| line.contains("crash_wild")), "{}", ran.errors);
            // The stack.
            assert!(lines.all(|line| line.starts_with("    ")), "{}", ran.errors);
            assert_eq!(ran.status.unwrap().signal(), Some(libc::SIGSEGV));
            assert_eq!(ran.output, "about to crash\n");

            let ran = run(&mut whole().run(programs, &options("conform/crash_abort")), LIMIT);
            assert!(
                ran.errors.starts_with(&line) && ran.errors.contains(" died of SIGABRT"),
                "{}",
                ran.errors
            );
            assert!(ran.errors.lines().skip(1).all(|line| line.starts_with("    ")), "{}", ran.errors);
            assert_eq!(ran.status.unwrap().signal(), Some(libc::SIGABRT));
        }
    }
}

/// Natively all threads end then. The new program is not on the nodes, which the user is told.
#[test]
fn a_program_that_replaces_itself_ends_on_all_nodes() {
    let folder = Folder::new();
    folder.compile("replaces");
    for who in ["0", "1", "2", "3"] {
        let mut command = Command::new("./replaces");
        let native = run(command.arg(who).current_dir(&*folder).env("PLACE", "here"), LIMIT);
        let place = if who == "1" || who == "3" { "there" } else { "here" };
        assert_eq!(native.output, format!("not replaced: No such file or directory\na b c d e in {place}\n"));
        assert_eq!((native.status.unwrap().code(), &*native.errors), (Some(7), ""));
        for fabric in FABRICS {
            let options = ["-n", "3", "--fabric", fabric, "--", "./replaces", who];
            let ran = run(whole().run(&folder, &options).env("PLACE", "here"), LIMIT);
            assert_eq!(ran.output, native.output, "{fabric}, thread {who}: {}", ran.errors);
            assert_eq!(ran.status, native.status, "{fabric}, thread {who}: {}", ran.errors);
            assert!(
                ran.errors.contains("has replaced itself by") && ran.errors.contains("sh (exec)"),
                "{}",
                ran.errors
            );
            assert_eq!(ran.errors.lines().count(), 1, "{}", ran.errors);
        }
    }
}

#[test]
fn a_full_span_is_a_failed_allocation() {
    let folder = Folder::new();
    folder.compile("exhaust");
    let ran = run(&mut whole().run(&folder, &["-n", "2", "--span", "1G", "--", "./exhaust"]), LIMIT);
    assert_eq!(ran.output, "refused 1\ngiven\n", "{}", ran.errors);
    assert!(ran.status.unwrap().success());
}

#[test]
fn a_library_that_cannot_be_shared_is_refused_with_a_sentence() {
    let folder = Folder::new();
    folder.compile("opens");
    let libraries = whole().programs.join("libraries");
    let library = |name: &str| libraries.join(name).to_str().unwrap().to_owned();
    let open = |name: &str| run(&mut whole().run(&folder, &["-n", "2", "--", "./opens", name]), LIMIT);
    for name in ["libown_locals.so", "libthrower.so", "liblocals.so"] {
        let ran = open(&library(name));
        assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("opened\n", ""), "{name}");
    }
    let name = library("libhuge_locals.so");
    let sentence = format!(
        "dlopen({name}): its thread-local variables are too large; link the program with it instead\n"
    );
    let ran = open(&name);
    assert_eq!((ran.output, ran.errors), (sentence.clone(), format!("gondwana: node 0: {sentence}")));
    assert!(ran.status.unwrap().success());
    let name = library("libcounts.so");
    let why = "the library has atomic instructions or waits for what other threads write, for which the run did not start; run it with --consistency sc";
    let sentence = format!("dlopen({name}): {why}\n");
    let ran = open(&name);
    assert_eq!((ran.output, ran.errors), (sentence.clone(), format!("gondwana: node 0: {sentence}")));
    let options = ["-n", "2", "--consistency", "sc", "--", "./opens", &name];
    let ran = run(&mut whole().run(&folder, &options), LIMIT);
    assert!(ran.errors.is_empty() && !ran.output.contains("dlopen"), "{}{}", ran.output, ran.errors);
    let go = "__asm__(\".section .go.buildinfo, \\\"a\\\"\\n.byte 1\\n.text\");\n";
    std::fs::write(folder.join("go.c"), go).unwrap();
    let built = Command::new("gcc").args(["-shared", "-o", "go.so", "go.c"]).current_dir(&*folder).status();
    assert!(built.unwrap().success());
    let ran = open("./go.so");
    let why = "is a library in Go, whose runtime maps memory and wakes threads without the C library: nodes cannot share it; run the program without gondwana\n";
    assert!(
        ran.output.starts_with("dlopen(") && ran.output.ends_with(&format!("it {why}")),
        "{}",
        ran.output
    );
    assert_eq!(ran.errors, format!("gondwana: node 0: {}", ran.output));
    assert!(ran.status.unwrap().success());
    let ran = open("./absent.so");
    assert_eq!(ran.output, "./absent.so: cannot open shared object file: No such file or directory\n");
    assert_eq!(ran.errors, "");
}

#[test]
fn no_file_outlives_a_run() {
    let names = || {
        let entries = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().contains("gondwana")).count()
    };
    let run = Endless::start(&["-n", "2", "--fabric", "shm"]);
    assert_eq!(names(), 0, "shared memory has no name even during a run");
    run.nodes[1].signal(libc::SIGKILL);
    run.end(SOON);
}
