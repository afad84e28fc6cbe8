//! Runs that end badly: at once, completely, and with one line that says why.

#[path = "programs/folder.rs"]
mod folder;
#[allow(dead_code, reason = "each test binary uses a part")]
#[path = "programs/whole.rs"]
mod whole;

use folder::Folder;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use whole::{LIMIT, Process, run, whole};

/// How long anything may be left of a run that has failed.
const SOON: Duration = Duration::from_secs(2);

const FABRICS: [&str; 2] = ["shm", "tcp"];

/// A run whose threads work on all nodes until it is ended.
struct Endless {
    launcher: Child,
    output: BufReader<ChildStdout>,
    /// In the order of their numbers: the launcher starts them so.
    nodes: Vec<Process>,
    _folder: Folder,
}

impl Endless {
    fn start(options: &[&str]) -> Self {
        let folder = Folder::new();
        folder.compile("endless");
        let mut command = whole().run(&folder, &[options, &["--", "./endless"]].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "all have started\n");
        let mut nodes = children(launcher.id());
        nodes.sort_unstable();
        let nodes = nodes.into_iter().map(|pid| Process::open(pid).unwrap()).collect();
        Self { launcher, output, nodes, _folder: folder }
    }

    /// Waits for the end of everything; the line on standard error, and how the launcher ended.
    fn end(mut self) -> (String, std::process::ExitStatus) {
        let start = Instant::now();
        for node in &self.nodes {
            let left = SOON.saturating_sub(start.elapsed());
            assert!(node.ends_within(left), "process {} of a node is left", node.pid);
        }
        let launcher = Process::open(self.launcher.id()).unwrap();
        assert!(launcher.ends_within(SOON.saturating_sub(start.elapsed())), "the launcher is left");
        let status = self.launcher.wait().unwrap();
        // The other ends of both streams are closed once no process of the run is left, known or not.
        let (mut rest, mut said) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.launcher.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(start.elapsed() < SOON + Duration::from_secs(1), "something was left for {:?}", start.elapsed());
        (said, status)
    }
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    numbers.filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the command may contain anything; state and parent follow its closing parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_killed_node_ends_the_run() {
    for fabric in FABRICS {
        for victim in 0..3 {
            let run = Endless::start(&["-n", "3", "--fabric", fabric]);
            assert_eq!(run.nodes.len(), 3);
            run.nodes[victim].signal(libc::SIGKILL);
            let (said, status) = run.end();
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
        let (said, status) = run.end();
        assert_eq!(said, "", "{fabric}");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
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
    let (said, status) = run.end();
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
            assert!(ran.errors.contains("crash_wild") && ran.errors.matches('\n').count() == 1, "{}", ran.errors);
            assert_eq!(ran.status.unwrap().signal(), Some(libc::SIGSEGV));
            assert_eq!(ran.output, "about to crash\n");

            let ran = run(&mut whole().run(programs, &options("conform/crash_abort")), LIMIT);
            assert!(ran.errors.starts_with(&line) && ran.errors.contains(" died of SIGABRT"), "{}", ran.errors);
            assert_eq!(ran.errors.matches('\n').count(), 1, "{}", ran.errors);
            assert_eq!(ran.status.unwrap().signal(), Some(libc::SIGABRT));
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
fn no_file_outlives_a_run() {
    let names = || {
        let entries = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().contains("gondwana")).count()
    };
    let run = Endless::start(&["-n", "2", "--fabric", "shm"]);
    assert_eq!(names(), 0, "shared memory has no name even during a run");
    run.nodes[1].signal(libc::SIGKILL);
    run.end();
}
