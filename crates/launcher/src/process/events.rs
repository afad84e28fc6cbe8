//! What happens to the nodes of a run, wherever they are.

use gondwana_console::failure::Failure;
use gondwana_control::{Order, Report};
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;
use std::time::Instant;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// By `exit`, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Who traces a process, as a debugger does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracer {
    /// Its process.
    pub process: u32,
    /// The name of its command; empty if it is not known.
    pub name: String,
}

/// A node whose process has not run for a while, because somebody has stopped it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The node.
    pub node: u16,
    /// Its process.
    pub process: u32,
    /// Who holds it, if it is a tracer.
    pub tracer: Option<Tracer>,
}

/// Something that the launcher has to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A node has got a process, with this number on its computer.
    Started(u16, u32),
    /// A node has reported something.
    Report(u16, Report),
    /// A node has recorded something: a chunk of the recording.
    Chunk(u16, Vec<u8>),
    /// The process of a node is gone. All its reports have come before.
    Ended(u16, End),
    /// A node has been stopped for a while, on this host in the user's list; `None` for the launcher's own computer.
    Stopped(Stop, Option<String>),
    /// A node that had been stopped for a while runs again.
    Continued(u16),
    /// What the program prints is lost from now on, which this sentence explains.
    OutputLost(String),
    /// The launcher itself was sent a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// True if the terminal sent it, to node 0 as well.
        from_terminal: bool,
    },
    /// Something can be read from the descriptor that is watched besides, or it has come to its end.
    Watched,
}

/// The nodes of a run.
pub trait Nodes {
    /// Waits for the next event; `None` when the deadline has passed.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Failure>;

    /// Tells a node to do something, if it still runs and hears.
    fn order(&mut self, node: u16, order: &Order);

    /// From now on [`Event::Watched`] comes when this event descriptor, which stays open, is set; it may have been cleared
    /// by then.
    fn watch(&mut self, fd: RawFd);

    /// Sends a signal to the process of a node, if it still runs.
    fn signal(&mut self, node: u16, signal: i32);

    /// True if the process of a node blocks a signal that has been sent to it and that it has not taken. False also
    /// where that cannot be known, as on another computer.
    fn holds_back(&mut self, _node: u16, _signal: i32) -> bool {
        false
    }

    /// Ends all processes that still run; each [`Event::Ended`] still comes.
    fn kill(&mut self);

    /// When all nodes have ended: waits until all that they have printed has been written, or somebody wants this process
    /// to end. `None` then; what has to be known meanwhile comes as an event.
    fn last_words(&mut self) -> Option<Event> {
        None
    }
}
