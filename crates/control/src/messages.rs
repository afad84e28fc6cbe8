//! What a node process and the launcher say to each other while the program runs.

use crate::bank::{BankAnswer, BankRequest, Reached};
use crate::boot::Monitoring;
use crate::waits::NodeWaits;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From a node to the launcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The node has joined the others and is about to run the program.
    Up,
    /// Totals since the start of the node.
    Progress {
        /// Faults taken.
        faults: u64,
        /// Bytes sent to other nodes.
        bytes: u64,
    },
    /// The node's counters: an object of named numbers, or of objects of them.
    Stats(serde_json::Value),
    /// The program is about to die of a signal.
    Crash {
        /// The thread of the program, 0 being the one that runs `main`.
        thread: u64,
        /// Number of the signal.
        signal: i32,
        /// The address that was touched, or 0 where the signal has none.
        address: u64,
        /// The kernel's number of the thread, if it stays until an [`Order::Die`] so that its stack can be read; else 0.
        task: u32,
        /// More, for people; may be empty.
        what: String,
    },
    /// The program asked for something that cannot work on several nodes. It goes on with an error code.
    Refused {
        /// A sentence that names it.
        what: String,
    },
    /// A thread is about to replace the program by another one (`exec`).
    Replacing {
        /// What that is called; empty if it has no name.
        program: String,
    },
    /// That has failed: the program goes on.
    NotReplaced,
    /// From the agent or launcher that has started the process: nothing more will be reported by it, because it has ended or runs
    /// another program.
    Silent,
    /// From the agent or launcher that has started the process: the kernel has ended it for want of memory.
    Starved {
        /// A part of a sentence that says whose memory, and what to do.
        why: String,
    },
    /// The process cannot be a node, and ends.
    Failed {
        /// A sentence that says why.
        why: String,
    },
    /// The monitor has failed: nothing more is recorded of the node, which goes on.
    Unrecorded {
        /// Where and why, in a few words.
        why: String,
    },
    /// Counters of filters have reached their thresholds.
    Thresholds {
        /// First addresses of the units that were counted, and what their counters have reached.
        reached: Vec<(u64, u64)>,
        /// How many more there were at the same time.
        more: u64,
    },
    /// A counter has reached a threshold that a thread of another node listens to: an [`Order::Reached`] for that node.
    Reached {
        /// That node.
        node: u16,
        /// What has happened.
        reached: Reached,
    },
    /// A thread of the program asks something of the counter banks of all nodes: an [`Order::BankAnswer`] is awaited.
    Bank(BankRequest),
    /// The answer of this node to [`Order::Bank`].
    BankDone(BankAnswer),
    /// The node has written its counters down.
    Counted,
    /// The answer to [`Order::Waits`], in parts.
    Waits {
        /// Some of it.
        part: NodeWaits,
        /// There are no more parts.
        last: bool,
    },
    /// The program wants the run to be recorded in a file: an [`Order::Answer`] is awaited.
    Record {
        /// Where, as the launcher understands it.
        file: PathBuf,
    },
    /// The program wants the recording to end: an [`Order::Answer`] is awaited.
    StopRecording,
    /// The connection to another node has broken.
    Lost {
        /// The node that is no longer heard of.
        node: u16,
        /// Why.
        reason: String,
        /// Its whole computer is silent: no news of the node itself will come.
        silent: bool,
    },
    /// The node has waited for seconds for another one of its computer, which holds a page of it, and waits on. Nodes hold
    /// pages for moments, unless they are stopped.
    HeldUp {
        /// The node that holds the page.
        by: u16,
    },
    /// The program has called `exit` or returned from `main`: sent before any other node can learn of it.
    Exit {
        /// The status as the parent process of the program would see it, 0 to 255.
        status: i32,
    },
    /// From node 0 after [`Report::Exit`]: the other nodes have written out everything and may be ended.
    Closed,
}

/// What the launcher receives from a node.
#[derive(Clone, Debug, PartialEq)]
pub enum News<'a> {
    /// A report.
    Report(Report),
    /// Chunks of the recording, one behind the other.
    Chunks(&'a [u8]),
}

/// From the launcher to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Record from now on. A node that records already begins anew.
    Monitor(Monitoring),
    /// Write down the rest of the recording, and record no more. Filters that a recording has come with go.
    Unmonitor,
    /// Write down the counters of filters, and then [`Report::Counted`].
    Count,
    /// The answer to [`Report::Record`] or [`Report::StopRecording`]: `None` if it is done, or an error number and a sentence.
    Answer(Option<(i32, String)>),
    /// Carry out a request of a thread of any node on the counter bank, and then [`Report::BankDone`].
    Bank {
        /// The node that has asked.
        asker: u16,
        /// The number of what is new, a filter or a secondary counter; else 0.
        number: u8,
        /// What it has asked for.
        request: BankRequest,
    },
    /// The answer of all counter banks to [`Report::Bank`].
    BankAnswer(BankAnswer),
    /// See [`Report::Reached`].
    Reached(Reached),
    /// Tell what the threads of the node wait for: a [`Report::Waits`].
    Waits,
    /// What is left of a thread that has crashed has been looked at: it may die.
    Die,
    /// Let this process trace the node, where the system asks the traced.
    LetTrace {
        /// The process of the tracer.
        process: u32,
    },
}
