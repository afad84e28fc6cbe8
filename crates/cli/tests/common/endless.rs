//! A run that continues until it is ended.

use super::folder::Folder;
use super::process::Process;
use super::whole::whole;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A run whose threads work on all nodes until it is ended.
pub(crate) struct Endless {
    /// The launcher.
    pub launcher: Child,
    output: BufReader<ChildStdout>,
    /// The launcher's children: without hosts the nodes, in any order.
    pub nodes: Vec<Process>,
    /// The numbers of the processes in which the threads run, as far as the program has said; threads are placed
    /// round-robin, the first on node 1.
    threads: Vec<u32>,
    _folder: Folder,
}

impl Endless {
    /// Starts it, and waits until threads run on all nodes.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_program("endless", options)
    }

    /// Starts another program that prints when it has started.
    pub(crate) fn start_program(name: &str, options: &[&str]) -> Self {
        let folder = Folder::new();
        folder.compile(name);
        let program = format!("./{name}");
        let mut command = whole().run(&folder, &[options, &["--", &program]].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.ends_with(" have started\n"), "{line}");
        let threads = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let nodes = children(launcher.id()).into_iter().map(|pid| Process::open(pid).unwrap()).collect();
        Self { launcher, output, nodes, threads, _folder: folder }
    }

    /// A node by its number, of a run without hosts.
    pub(crate) fn node(&self, number: usize) -> &Process {
        let count = self.nodes.len();
        let pid = self.threads[(number + count - 1) % count];
        self.nodes.iter().find(|node| node.pid == pid).unwrap()
    }

    /// Waits for the end of all processes, which must come soon; returns standard error and the launcher's status.
    pub(crate) fn end(mut self, soon: Duration) -> (String, ExitStatus) {
        let start = Instant::now();
        for node in &self.nodes {
            let left = soon.saturating_sub(start.elapsed());
            assert!(node.ends_within(left), "process {} of a node is left", node.pid);
        }
        let launcher = Process::open(self.launcher.id()).unwrap();
        assert!(launcher.ends_within(soon.saturating_sub(start.elapsed())), "the launcher is left");
        let status = self.launcher.wait().unwrap();
        // The other ends of both streams are closed once no process of the run is left, known or not.
        let (mut rest, mut said) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.launcher.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(
            start.elapsed() < soon + Duration::from_secs(1),
            "something was left for {:?}",
            start.elapsed()
        );
        (said, status)
    }
}

/// The processes that a process has started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    numbers.filter(|&pid| parent_of(pid) == Some(parent)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the command may contain anything; state and parent follow its closing parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
