//! Runs that are going on: what the launcher tells about its own, and how others find and ask it.
//!
//! A launcher listens on a socket in the abstract namespace whose name says its user and its process: nothing is left
//! behind however it ends. Whoever connects is sent one JSON document, a [`Running`]. Another socket takes requests.

pub mod answer;
pub mod ask;
mod credentials;
pub mod memory;
pub mod requests;

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

/// What the names of all sockets begin with.
const PREFIX: &str = "gondwana-run-";

/// A launcher: what the name of its socket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launcher {
    /// Its process.
    pub process: u32,
    /// Its effective user.
    pub user: u32,
}

impl Launcher {
    /// This process.
    fn this() -> Self {
        Self { process: std::process::id(), user: credentials::this_user() }
    }

    /// The name of its socket in the abstract namespace.
    fn name(self) -> String {
        format!("{PREFIX}{}-{}", self.user, self.process)
    }

    /// The name of the socket that takes requests.
    fn counter_name(self) -> String {
        format!("gondwana-requests-{}-{}", self.user, self.process)
    }

    /// The launcher whose socket has this name.
    fn named(name: &str) -> Option<Self> {
        let (user, process) = name.strip_prefix(PREFIX)?.split_once('-')?;
        let launcher = Self { process: process.parse().ok()?, user: user.parse().ok()? };
        // Numbers have other spellings, too, such as +1.
        (launcher.name() == name).then_some(launcher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_user_and_process() {
        let launcher = Launcher { process: 4711, user: 1000 };
        assert_eq!(launcher.name(), "gondwana-run-1000-4711");
        assert_eq!(Launcher::named("gondwana-run-1000-4711"), Some(launcher));
        for other in ["gondwana-run-", "gondwana-run-1", "gondwana-run-1-+2", "gondwana-run-1-2-3", "x"] {
            assert_eq!(Launcher::named(other), None, "{other}");
        }
    }
}
