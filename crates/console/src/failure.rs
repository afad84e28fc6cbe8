//! Failures of a command, with their messages and exit statuses.

use std::fmt;

/// Usage error; the status that shells and most tools use.
pub const USAGE: u8 = 2;
/// The launcher itself has failed; the status that `env`, `nohup` and `timeout` use.
pub const CANNOT: u8 = 125;
/// The program is there and cannot be run.
pub const NOT_RUNNABLE: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;

/// One line for the user and the exit status that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit status of the launcher.
    pub status: u8,
    /// What is wrong and what to do about it, without a full stop or a line break at the end. The user's input may
    /// follow on further lines, with marks at the position.
    pub message: String,
}

impl Failure {
    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { status: USAGE, message: message.into() }
    }

    /// The launcher cannot go on.
    pub fn cannot(message: impl Into<String>) -> Self {
        Self { status: CANNOT, message: message.into() }
    }

    /// The program is there and cannot be run.
    pub fn not_runnable(message: impl Into<String>) -> Self {
        Self { status: NOT_RUNNABLE, message: message.into() }
    }

    /// There is no such program.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { status: NOT_FOUND, message: message.into() }
    }

    /// A system call has failed.
    pub fn system(what: &str, error: &std::io::Error) -> Self {
        Self::cannot(format!("{what}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
