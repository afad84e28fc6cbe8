//! Events of the nodes of a run, on this computer or on others.

use crate::stacks::look::{LookRequest, LookResult};
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

/// A node whose process has been stopped for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The node.
    pub node: u16,
    /// Its process.
    pub process: u32,
    /// The tracer that holds it, if there is one.
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
    /// The process of a node has ended. All its reports came before.
    Ended(u16, End),
    /// A node has been stopped for a while, on this host in the user's list; `None` for the launcher's own computer.
    Stopped(Stop, Option<String>),
    /// A node that was reported as stopped runs again.
    Continued(u16),
    /// The program's output is lost from now on; the sentence gives the reason.
    OutputLost(String),
    /// The launcher itself was sent a signal.
    Signal {
        /// Its number.
        signal: i32,
        /// True if the terminal sent it, to node 0 as well.
        from_terminal: bool,
    },
    /// The watched descriptor is readable or at its end.
    Watched,
    /// Stacks have been read for the request with this number; their names follow.
    Unwound(u64),
    /// Stacks that were asked for.
    Looked(LookResult),
}

/// The nodes of a run.
pub trait Nodes {
    /// Waits for the next event; `None` when the deadline has passed.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Failure>;

    /// Sends an order to a node, if it still runs and accepts it.
    fn order(&mut self, node: u16, order: &Order);

    /// From now on [`Event::Watched`] comes when this eventfd, which stays open, is set; it may already be cleared
    /// again.
    fn watch(&mut self, fd: RawFd);

    /// Looks at the threads of nodes, as far as they run: [`Event::Unwound`] and [`Event::Looked`] come afterwards, several times
    /// if the nodes are on several computers.
    fn look(&mut self, _request: &LookRequest) {}

    /// Sends a signal to the process of a node, if it still runs.
    fn signal(&mut self, node: u16, signal: i32);

    /// True if a signal is pending and blocked in the process of a node. False also if that is unknown, as on another
    /// computer.
    fn holds_back(&mut self, _node: u16, _signal: i32) -> bool {
        false
    }

    /// Ends all processes that still run; each [`Event::Ended`] still comes.
    fn kill(&mut self);

    /// When all nodes have ended: waits until all their output has been written, or a signal ends the wait; `None`
    /// then. Other events are returned meanwhile.
    fn last_words(&mut self) -> Option<Event> {
        None
    }
}
