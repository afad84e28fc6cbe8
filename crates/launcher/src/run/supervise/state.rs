//! What is known about a run while its nodes are followed.

use crate::process::events::End;
use crate::progress_line::ProgressLine;
use crate::run::monitored::Monitored;
use crate::run_registry::State;
use crate::run_registry::answer::RunRegistry;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What a node has told of its death.
#[derive(Clone, Debug)]
pub struct Crash {
    pub thread: u64,
    pub address: u64,
    pub what: String,
}

/// What is known about one node.
#[derive(Clone, Debug, Default)]
pub struct SupervisedNode {
    /// Its process, as a number of its computer.
    pub process: Option<u32>,
    pub up: bool,
    pub ended: bool,
    pub exit: bool,
    /// It was ended because the program has, and nobody needs it any more.
    pub released: bool,
    /// The user has been told that it is stopped.
    pub stopped: bool,
    pub crash: Option<Crash>,
    /// Why the kernel has ended it, if that was for want of memory.
    pub starved: Option<String>,
}

/// Follows nodes until all have ended.
pub struct Supervisor<'a> {
    pub nodes: Vec<SupervisedNode>,
    /// Whether nodes have the runtime library and so report.
    pub reporting: bool,
    pub stats: BTreeMap<u16, serde_json::Value>,
    pub live: ProgressLine,
    /// What those are told who ask about the run, if anybody can.
    pub registry: Option<Arc<RunRegistry>>,
    /// Where what nodes record goes.
    pub monitored: Option<Monitored>,
    pub say: &'a mut dyn FnMut(&str),
    pub end: Option<End>,
    /// Signals passed on to node 0: no surprise if it dies of one of them.
    pub passed_on: Vec<i32>,
    pub lost: Option<String>,
    /// What the program has printed could not be written.
    pub output_lost: bool,
    /// A whole computer is silent: the nodes on it cannot be followed to their ends.
    pub silent: bool,
    pub killed: bool,
    pub deadline: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    /// A supervisor of `nodes` nodes. `say` prints one line for the user.
    pub fn new(nodes: u16, reporting: bool, live: ProgressLine, say: &'a mut dyn FnMut(&str)) -> Self {
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
        }
    }

    /// Keeps the run registry up to date.
    pub fn keeping(self, registry: Option<Arc<RunRegistry>>) -> Self {
        Self { registry, ..self }
    }

    /// Lets the run be monitored.
    pub fn monitored(self, monitored: Monitored) -> Self {
        Self { monitored: Some(monitored), ..self }
    }

    /// A node is further than it was, for those who ask.
    pub fn reached(&self, number: u16, state: State) {
        if let Some(registry) = &self.registry {
            registry.reached(number, state);
        }
    }

    /// True once a node has said that the program is ending.
    pub fn exiting(&self) -> bool {
        self.nodes.iter().any(|node| node.exit)
    }

    /// Tells the user something, in one line.
    pub fn say(&mut self, line: &str) {
        self.live.erase();
        (self.say)(line);
    }
}
