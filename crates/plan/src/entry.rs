//! What a plan says.

use crate::CodeLocation;
use gondwana_rset::{MemoryPolicy, PlacementPart};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// A plan. Of several entries about the same memory, the first one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What the run asked of other nodes that the plan was made from, if it was made from one.
    pub before: Option<Traffic>,
    /// What a run under the plan is expected to ask.
    pub expected: Option<Traffic>,
    /// About global variables.
    pub variables: Vec<Variable>,
    /// About what is allocated.
    pub allocations: Vec<Allocation>,
    /// About threads. No thread is in two groups.
    pub threads: Vec<ThreadGroup>,
}

/// What nodes ask of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Pages fetched while a thread waited, diffs sent and write notices received.
    pub requests: u64,
    /// Bytes of pages and diffs that moved.
    pub bytes: u64,
}

/// Where a global variable goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The line of the plan that names it, counted from 1.
    pub line: usize,
    /// Its name in the program, in C++ with its namespaces.
    pub name: String,
    /// The file name of the library that defines it; `None` for the executable.
    pub library: Option<String>,
    /// Its homes.
    pub homes: Homes,
    /// See [`Allocation::replicate`].
    pub replicate: bool,
    /// The reason, in words.
    pub reason: String,
    /// The expected saving; written as a comment, and not read.
    pub saving: Option<Traffic>,
}

/// The homes of memory that is allocated at one location of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The line of the plan that names the location, counted from 1.
    pub line: usize,
    /// The location.
    pub site: CodeLocation,
    /// The caller of the function that contains the location, if the entry is restricted to one; in the same file.
    pub caller: Option<CodeLocation>,
    /// The file name of the library that contains the location; `None` for the executable.
    pub library: Option<String>,
    /// The smallest matching allocation, in bytes.
    pub min_bytes: u64,
    /// The largest one.
    pub max_bytes: u64,
    /// Its homes.
    pub homes: Homes,
    /// The memory is mostly read: a node that reads a page of it prefetches the pages around it.
    pub replicate: bool,
    /// The reason, in words.
    pub reason: String,
    /// The expected saving; written as a comment, and not read.
    pub saving: Option<Traffic>,
}

/// The nodes that pages are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Homes {
    /// By policy; [`MemoryPolicy::Float`] says nothing.
    Policy(MemoryPolicy),
    /// Part by part, each with at least a page. Pages behind the last part are where that is.
    Parts(Vec<PlacementPart>),
}

impl Default for Homes {
    fn default() -> Self {
        Self::Policy(MemoryPolicy::Float)
    }
}

/// Threads that go to the same node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    /// The line of the plan that lists them, counted from 1.
    pub line: usize,
    /// Their numbers: 0 runs `main`, the others count in the order of creation.
    pub threads: Vec<u32>,
    /// The node; `None` if it is that of the first of them to start.
    pub node: Option<NodeId>,
    /// The reason, in words.
    pub reason: String,
    /// The expected saving; written as a comment, and not read.
    pub saving: Option<Traffic>,
}
