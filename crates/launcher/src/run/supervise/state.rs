//! The supervisor's state of a run.

use super::crashes::Obituary;
use super::looks::Looks;
use crate::process::events::End;
use crate::progress_line::ProgressLine;
use crate::run::monitored::Monitored;
use crate::run_registry::State;
use crate::run_registry::answer::RunRegistry;
use crate::stacks::look::StackFrame;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A node's report of its own death.
#[derive(Clone, Debug)]
pub(crate) struct Crash {
    pub thread: u64,
    pub address: u64,
    pub what: String,
    /// The number of the request for its stack, while that is under way.
    pub looking: Option<u64>,
    /// The frames of the thread, the innermost first, once they are known.
    pub stack: Vec<StackFrame>,
}

/// The state of one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct SupervisedNode {
    /// Its process, as a number of its computer.
    pub process: Option<u32>,
    pub up: bool,
    pub ended: bool,
    pub exit: bool,
    /// The supervisor ended it, because the program has ended.
    pub released: bool,
    /// Another program is taking the place of this one (`exec`), with this name.
    pub replaced: Option<String>,
    /// The user has been told that it is stopped.
    pub stopped: bool,
    pub crash: Option<Crash>,
    /// Why the kernel killed it, if that was for memory.
    pub starved: Option<String>,
}

/// Follows nodes until all have ended.
pub(crate) struct Supervisor<'a> {
    pub nodes: Vec<SupervisedNode>,
    /// Whether nodes have the runtime library and so report.
    pub reporting: bool,
    pub stats: BTreeMap<u16, serde_json::Value>,
    pub live: ProgressLine,
    /// The answers to queries, if there are any.
    pub registry: Option<Arc<RunRegistry>>,
    /// The receivers of records.
    pub monitored: Option<Monitored>,
    pub say: &'a mut dyn FnMut(&str),
    pub end: Option<End>,
    /// Signals passed on to node 0: its death by one of them is not reported.
    pub passed_on: Vec<i32>,
    pub lost: Option<String>,
    /// Output of the program could not be written.
    pub output_lost: bool,
    /// A computer is silent: the ends of the nodes on it cannot be observed.
    pub silent: bool,
    pub killed: bool,
    pub deadline: Option<Instant>,
    /// What is being looked at.
    pub looks: Looks,
    /// The death of a node that is still to be told.
    pub obituary: Option<Obituary>,
}

impl<'a> Supervisor<'a> {
    /// A supervisor of `nodes` nodes. `say` prints one line for the user.
    pub(crate) fn new(nodes: u16, reporting: bool, live: ProgressLine, say: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            nodes: vec![SupervisedNode::default(); usize::from(nodes)],
            reporting,
            stats: BTreeMap::new(),
            live,
            registry: None,
            monitored: None,
            say,
            end: None,
            passed_on: vec![],
            lost: None,
            output_lost: false,
            silent: false,
            killed: false,
            deadline: None,
            looks: Looks::default(),
            obituary: None,
        }
    }

    /// Keeps the run registry up to date.
    pub(crate) fn keeping(self, registry: Option<Arc<RunRegistry>>) -> Self {
        Self { registry, ..self }
    }

    /// Lets the run be monitored.
    pub(crate) fn monitored(self, monitored: Monitored) -> Self {
        Self { monitored: Some(monitored), ..self }
    }

    /// Records a node's new state, for queries.
    pub(crate) fn reached(&self, number: u16, state: State) {
        if let Some(registry) = &self.registry {
            registry.reached(number, state);
        }
    }

    /// True once a node has reported that the program is ending.
    pub(crate) fn exiting(&self) -> bool {
        self.nodes.iter().any(|node| node.exit)
    }

    /// The node whose process is another program by now, or is becoming one.
    pub(crate) fn replaced(&self) -> Option<u16> {
        (0..).zip(&self.nodes).find_map(|(number, node)| node.replaced.is_some().then_some(number))
    }

    /// Prints one line for the user.
    pub(crate) fn say(&mut self, line: &str) {
        self.live.erase();
        (self.say)(line);
    }
}
