//! Defects of Gondwana itself, and nodes that stop at the worst moment. Environment variables cause both, which only
//! builds with debug assertions read.
#![cfg(debug_assertions)]

mod common;

use common::endless::children;
use common::folder::Folder;
use common::process::Process;
use common::whole::{run, whole};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const FABRICS: [&str; 2] = ["shm", "tcp"];

/// The timeout of a run that fails by itself, in a fraction of it.
const SECONDS: Duration = Duration::from_secs(20);

/// The message of a run that `GONDWANA_TEST_PANIC` makes fail, which must be one line.
fn said_by_a_defect(folder: &Folder, fabric: &str, defect: &str, program: &str) -> String {
    let options = ["-n", "3", "--fabric", fabric, "--", program];
    let ran = run(whole().run(folder, &options).env("GONDWANA_TEST_PANIC", defect), SECONDS);
    let status = ran.status.unwrap_or_else(|| panic!("{defect} over {fabric} hangs: {}", ran.errors));
    assert_eq!(status.code(), Some(125), "{defect} over {fabric}: {}", ran.errors);
    assert_eq!(ran.errors.matches('\n').count(), 1, "{defect} over {fabric}: {}", ran.errors);
    ran.errors
}

#[test]
fn a_defect_in_any_thread_of_the_runtime_ends_the_run_and_says_so() {
    let folder = Folder::new();
    folder.compile("endless");
    for fabric in FABRICS {
        for (defect, thread) in [
            ("0:service", "the service thread"),
            ("2:service", "the service thread"),
            ("0:monitor", "the thread \"monitor\" of the runtime"),
            ("1:monitor", "the thread \"monitor\" of the runtime"),
        ] {
            let said = said_by_a_defect(&folder, fabric, defect, "./endless");
            let (node, place) = defect.split_once(':').unwrap();
            let sentence =
                format!("gondwana: node {node}: {thread} has failed: a test wants {place} to fail, crates/");
            assert!(said.starts_with(&sentence), "{said}");
            assert!(said.ends_with(": this is a defect of Gondwana, please report it\n"), "{said}");
        }
    }
}

#[test]
fn a_defect_in_a_thread_of_the_program_inside_the_runtime_ends_the_run_and_says_so() {
    let folder = Folder::new();
    folder.compile("endless");
    for fabric in FABRICS {
        for node in [0, 1] {
            // Any receiving thread may handle a message, with the lock of the node.
            let said = said_by_a_defect(&folder, fabric, &format!("{node}:message"), "./endless");
            let start = format!("gondwana: node {node}: th");
            assert!(said.starts_with(&start) && said.contains("a test wants message to fail"), "{said}");
            let said = said_by_a_defect(&folder, fabric, &format!("{node}:fault"), "./endless");
            let start = format!("gondwana: node {node}: thread ");
            assert!(said.starts_with(&start) && said.contains("a test wants fault to fail"), "{said}");
        }
    }
}

#[test]
fn a_defect_while_the_program_ends_is_no_success() {
    let folder = Folder::new();
    folder.compile("waits");
    for fabric in FABRICS {
        let said = said_by_a_defect(&folder, fabric, "1:close", "./waits");
        let sentence = "gondwana: node 1: the thread \"close\" of the runtime has failed: ";
        assert!(said.starts_with(sentence), "{said}");
    }
}

/// Waits until one of the processes that a process has started is stopped; its number.
fn until_stopped(parent: u32) -> u32 {
    let is_stopped = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    };
    let start = Instant::now();
    loop {
        if let Some(pid) = children(parent).into_iter().find(is_stopped) {
            return pid;
        }
        assert!(start.elapsed() < SECONDS, "no process is stopped");
        std::thread::yield_now();
    }
}

#[test]
fn a_stopped_node_that_others_wait_for_is_named_and_may_go_on() {
    if let Err(missing) = gondwana_memory::probe_userfaultfd() {
        eprintln!("skipped: userfaultfd is not to be had here: {missing:?}");
        return;
    }
    let folder = Folder::new();
    folder.compile("takes");
    let mut command =
        whole().run(&folder, &["-n", "2", "--fabric", "shm", "--common-after", "0", "--", "./takes"]);
    // Node 1 stops itself while it holds a page of node 0.
    command.env("GONDWANA_TEST_STOP", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut launcher = command.spawn().unwrap();
    let stopped = until_stopped(launcher.id());
    launcher.stdin.take().unwrap().write_all(b"!").unwrap();
    let mut errors = BufReader::new(launcher.stderr.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut first, mut rest) = (String::new(), String::new());
        errors.read_line(&mut first).unwrap();
        sender.send(first).unwrap();
        errors.read_to_string(&mut rest).unwrap();
        rest
    });
    let said = receiver.recv_timeout(SECONDS);
    if said.is_err() {
        launcher.kill().unwrap();
    }
    assert_eq!(
        said.unwrap(),
        format!(
            "gondwana: node 0 waits for node 1, which holds one of its pages: if that node is stopped, let it go \
             on with `kill -CONT {stopped}`\n"
        )
    );
    Process::open(stopped).unwrap().signal(libc::SIGCONT);
    let mut output = String::new();
    launcher.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!((output.as_str(), launcher.wait().unwrap().code()), ("1720\n", Some(3)));
    assert_eq!(reader.join().unwrap(), "");
}
