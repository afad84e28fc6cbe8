//! A run whose program waits.

use super::folder::Folder;
use super::process::Process;
use super::whole::{LIMIT, Ran, run, whole};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A run whose program waits for the end of its standard input.
pub(crate) struct Waiting {
    launcher: Child,
    folder: Folder,
}

impl Waiting {
    /// Starts it, and waits until a thread on node 1 has written to its pages.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_with(options, |_, _| {})
    }

    /// As [`Waiting::start`], after `prepare` has changed the command and its folder.
    pub(crate) fn start_with(options: &[&str], prepare: impl FnOnce(&mut Command, &Path)) -> Self {
        let folder = Folder::new();
        folder.compile("waits");
        let mut command = whole().run(&folder, &[options, &["--", "./waits"]].concat());
        prepare(&mut command, &folder);
        let mut launcher = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(launcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { launcher, folder }
    }

    /// The process of the launcher.
    pub(crate) fn pid(&self) -> u32 {
        self.launcher.id()
    }

    /// A file in the folder that it runs in.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The JSON output once all nodes are up: the program may be faster than the reports of its nodes.
    pub(crate) fn json_when_up(&self) -> Value {
        let start = Instant::now();
        loop {
            let ran = topo(&["--run", &self.pid().to_string(), "--json"]);
            assert!(ran.status.unwrap().success(), "{}", ran.errors);
            let json: Value = serde_json::from_str(&ran.output).unwrap();
            if json["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "up") {
                return json;
            }
            assert!(start.elapsed() < LIMIT, "{json:#}");
        }
    }

    /// Lets the program end, with its native output.
    pub(crate) fn end(mut self) {
        drop(self.launcher.stdin.take());
        assert!(Process::open(self.pid()).unwrap().ends_within(LIMIT));
        assert_eq!(self.launcher.wait().unwrap().code(), Some(3));
    }

    /// Kills the launcher, and so the nodes.
    pub(crate) fn kill(&mut self) {
        self.launcher.kill().unwrap();
        self.launcher.wait().unwrap();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// `gondwana topo` with these arguments.
pub(crate) fn topo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(&whole().gondwana);
    command.arg("topo").args(arguments);
    command
}

/// Runs it to its end.
pub(crate) fn topo(arguments: &[&str]) -> Ran {
    run(&mut topo_command(arguments), LIMIT)
}

/// A command must have failed with this status and one sentence that contains the text.
pub(crate) fn refuses(ran: &Ran, status: i32, text: &str) {
    assert_eq!(ran.status.unwrap().code(), Some(status), "{}", ran.errors);
    assert!(ran.errors.contains(text) && ran.errors.matches('\n').count() == 1, "{}", ran.errors);
    assert_eq!(ran.output, "");
}
