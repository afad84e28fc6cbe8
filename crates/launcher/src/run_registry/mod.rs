//! Running runs: the launcher's answers about its own run, and the search and queries of commands.
//!
//! A launcher listens on a socket in a private directory of its user (`socket_directory`); the name of the socket
//! contains its process number. Each connection is sent one JSON document, a [`Running`]. Another socket takes
//! requests.

pub mod answer;
pub mod ask;
pub(crate) mod credentials;
pub mod memory;
pub mod requests;
mod socket;
mod socket_directory;

use serde::{Deserialize, Serialize};

/// A launcher's answer about its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// The program, as the user named it.
    pub program: String,
    /// How long ago the run was started, in seconds.
    pub seconds: f64,
    /// The fabric, as in the option.
    pub fabric: String,
    /// The consistency, as in the option.
    pub consistency: String,
    /// How many processors each node counts as having.
    pub processors_each: u16,
    /// Bytes of shared address space.
    pub span: u64,
    /// Whether the run is monitored.
    pub monitored: bool,
    /// Whether pages may be common to its nodes, so that a recording lacks what is done to them.
    pub common: bool,
    /// The nodes in the order of their numbers.
    pub nodes: Vec<RunningNode>,
}

/// A launcher's data about one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningNode {
    /// The host in the user's list; `None` for a node on the launcher's own computer.
    pub host: Option<String>,
    /// The number of its process on its host, once known.
    pub process: Option<u32>,
    /// Its state.
    pub state: State,
}

impl RunningNode {
    /// A node that has not reported yet.
    pub fn starting(host: Option<String>) -> Self {
        Self { host, process: None, state: State::Starting }
    }
}

/// How far a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It has not joined the others.
    Starting,
    /// It runs the program.
    Up,
    /// Its process has ended; the others are about to.
    Ended,
}

impl State {
    /// The user's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Ended => "ended",
        }
    }
}

/// A launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launcher {
    /// Its process.
    pub process: u32,
    /// Its effective user.
    pub user: u32,
}
