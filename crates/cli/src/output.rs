//! Where results go: standard output, or a file that is opened before the work begins, so that it is known then that it
//! cannot be written.

use crate::failure::Failure;
use crate::run::limits::explained;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the results of a command, which end it.
pub fn print(text: &str) -> Result<ExitCode, Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::system("standard output", &error)),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// The file. What it holds stays until there is something to write; a new file goes away if there never is.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    unused: bool,
}

impl Output {
    /// Opens or makes the file that the user has named with an option.
    pub fn open(option: &str, path: &Path) -> Result<Self, Failure> {
        let new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| {
            Failure::cannot(format!("{option}: {} cannot be written: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), file, unused: new })
    }

    /// Replaces the contents.
    pub fn write(mut self, text: &str) -> Result<(), Failure> {
        self.unused = false;
        // Pipes and terminals have nothing to be replaced.
        if self.file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            let emptied = self.file.rewind().and_then(|()| self.file.set_len(0));
            emptied.map_err(|error| self.failed(&error))?;
        }
        self.file.write_all(text.as_bytes()).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::cannot(format!("{}: {}", self.path.display(), explained(error)))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.unused {
            // An empty file is left at the worst.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
