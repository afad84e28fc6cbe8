//! Where results go: standard output, or a file of which it is known before the work begins that it can be written.

use crate::clean;
use crate::create::{Destination, Fresh, Readers, destination, replace};
use crate::failure::Failure;
use crate::rlimit::explained;
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the results of a command, which end it.
pub fn print(text: &str) -> Result<ExitCode, Failure> {
    match io::stdout().write_all(clean::text(text).as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::system("standard output", &error)),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Tells the user something that is no result: a sentence with what may be a text of others in it. Where nobody can be told,
/// the work goes on.
pub fn tell(sentence: &str) {
    let _ = writeln!(io::stderr(), "gondwana: {}", clean::text(sentence));
}

/// A result for programs.
///
/// # Panics
/// If it is no JSON, which is an error of the caller's.
pub fn json(value: &impl Serialize) -> String {
    clean::json(&serde_json::to_string_pretty(value).expect("results are JSON")) + "\n"
}

/// A file that the user has named. What has its name stays until there is something to write.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// What takes bytes as they come, if the name is that of such a thing.
    stream: Option<File>,
    readers: Readers,
}

impl Output {
    /// Finds out whether the file can be written that the user has named with an option.
    pub fn open(option: &str, path: &Path, readers: Readers) -> Result<Self, Failure> {
        let stream = destination(path).and_then(|place| match place {
            Destination::Stream(stream) => Ok(Some(stream)),
            // Made for trial: one that waits for the end of the work would be left behind by whoever is killed.
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
