//! What a run is told about the homes of its pages and the nodes of its threads.

use gondwana_rset::{MemoryPolicy, Part};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which homes the pages of a run get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Homes {
    /// For all memory that no rule is about.
    pub policy: MemoryPolicy,
    /// For some of it; of several rules that are about the same memory, the first one counts.
    pub rules: Vec<Rule>,
}

/// What is to be done with some memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The file name of the library that the addresses are in; `None` for the executable.
    pub library: Option<String>,
    /// Which memory.
    pub target: Target,
    /// Its homes; `None` for those that it would have without the rule.
    pub homes: Option<Wish>,
    /// A node that reads one of its pages gets those around it as well.
    pub replicate: bool,
}

/// The homes of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Wish {
    /// By policy.
    Policy(MemoryPolicy),
    /// Part by part.
    Parts(Vec<Part>),
}

/// Which memory a rule is about. Addresses are those in the file, as the linker gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A global variable.
    Variable(Range<u64>),
    /// What is allocated by calls from this code.
    Site {
        /// Where the calls are; what counts is the address before the one that the call returns to.
        calls: Vec<Range<u64>>,
        /// Where the calls around those are; `None` if that does not matter.
        callers: Option<Vec<Range<u64>>>,
        /// Fewest and most bytes of an allocation that is meant.
        bytes: (u64, u64),
    },
}

/// Threads that go to the same node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadGroup {
    /// Their numbers: 0 runs `main`, the others count in the order of creation.
    pub threads: Vec<u32>,
    /// The node; `None` for that of the first of them to start.
    pub node: Option<NodeId>,
}
