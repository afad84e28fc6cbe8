//! Runs that are going on: what the launcher tells about its own, and how others find and ask it.
//!
//! A launcher listens on a socket in a directory that only its user can look into (`socket_directory`); its name says its process.
//! Whoever connects is sent one JSON document, a [`Running`]. Another socket takes requests.

pub mod answer;
pub mod ask;
mod credentials;
pub mod memory;
pub mod requests;
mod socket;
mod socket_directory;

use serde::{Deserialize, Serialize};

/// What a launcher tells about its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// The program, as the user has called it.
    pub program: String,
    /// How long ago the run was started, in seconds.
    pub seconds: f64,
    /// How the nodes talk, in the word of the option.
    pub fabric: String,
    /// Which programs the memory is right for, in the word of the option.
    pub consistency: String,
    /// How many processors each node counts as having.
    pub processors_each: u16,
    /// Bytes of shared address space.
    pub span: u64,
    /// Whether the nodes record what crosses between them.
    pub monitored: bool,
    /// The nodes in the order of their numbers.
    pub nodes: Vec<RunningNode>,
}

/// What a launcher knows about one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningNode {
    /// The host in the user's list; `None` for a node on the launcher's own computer.
    pub host: Option<String>,
    /// The number of its process on its host, once that is known.
    pub process: Option<u32>,
    /// How far it is.
    pub state: State,
}

impl RunningNode {
    /// A node of which nothing has been heard.
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
    /// The word that the user knows.
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
