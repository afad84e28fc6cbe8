//! Output of results: standard output, or a file that is checked to be writable before the work begins.

use crate::clean;
use crate::create::{Destination, Fresh, Readers, destination, replace};
use crate::failure::Failure;
use crate::rlimit::explained;
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the result of a command.
pub fn print(text: &str) -> Result<ExitCode, Failure> {
    match io::stdout().write_all(clean::text(text).as_bytes()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::system("standard output", &error)),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Prints a message for the user, which may contain untrusted text, on standard error. Errors of writing are ignored.
pub fn tell(sentence: &str) {
    // In one piece: the program may be writing there, too.
    let line = format!("gondwana: {}\n", clean::text(sentence));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A result as JSON.
///
/// # Panics
/// If it cannot be serialised, which is a defect of the caller.
pub fn json(value: &impl Serialize) -> String {
    clean::json(&serde_json::to_string_pretty(value).expect("results are JSON")) + "\n"
}

/// A file that the user has named. An existing file stays until the new contents are written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// The stream, if the name is that of one.
    stream: Option<File>,
    readers: Readers,
}

impl Output {
    /// Finds out whether the file can be written that the user has named with an option.
    pub fn open(option: &str, path: &Path, readers: Readers) -> Result<Self, Failure> {
        let stream = destination(path).and_then(|place| match place {
            Destination::Stream(stream) => Ok(Some(stream)),
            // A trial only: a file that waited for the end of the work would remain when the command is killed.
            Destination::File => Fresh::beside(path, readers).map(|_| None),
        });
        let stream = stream.map_err(|error| {
            Failure::cannot(format!("{option}: {} cannot be written: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), stream, readers })
    }

    /// Replaces the contents.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        let written = match self.stream {
            Some(mut stream) => stream.write_all(text.as_bytes()),
            None => replace(&self.path, text.as_bytes(), self.readers),
        };
        written.map_err(|error| Failure::cannot(format!("{}: {}", self.path.display(), explained(&error))))
    }
}
