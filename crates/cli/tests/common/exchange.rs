//! A run whose threads exchange pages until it is ended.

use super::folder::Folder;
use super::process::Process;
use super::whole::{LIMIT, whole};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

/// A run of `programs/exchange.c`.
pub(crate) struct Exchange {
    launcher: Child,
    output: BufReader<ChildStdout>,
    folder: Folder,
}

impl Exchange {
    /// Starts it, and waits until pages have been exchanged. They go on being exchanged: they become common only if the options say so.
    pub(crate) fn start(options: &[&str]) -> Self {
        let folder = Folder::new();
        folder.compile("exchange");
        let copies: &[&str] =
            if options.contains(&"--common-after") { &[] } else { &["--common-after", "0"] };
        let mut command = whole().run(&folder, &[options, copies, &["--", "./exchange"]].concat());
        let mut launcher = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { launcher, output, folder }
    }

    /// The number of the run.
    pub(crate) fn pid(&self) -> String {
        self.launcher.id().to_string()
    }

    /// The launcher.
    pub(crate) fn launcher(&self) -> Process {
        Process::open(self.launcher.id()).unwrap()
    }

    /// The folder that it runs in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file in that folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Lets the program end, with its native output; its files remain.
    pub(crate) fn end(&mut self) {
        drop(self.launcher.stdin.take());
        assert!(self.launcher().ends_within(LIMIT));
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), self.launcher.wait().unwrap().code()), ("the same\n", Some(3)));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            self.launcher.kill().unwrap();
            self.launcher.wait().unwrap();
        }
    }
}
