//! Placement rules: what a run says about the homes of its pages and the nodes of its threads.

use gondwana_rset::{MemoryPolicy, PlacementPart};
use gondwana_topology::{Bytes, MAX_PROCESSORS, Machine, NodeId, View};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which homes the pages of a run get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Homes {
    /// For all memory that no rule is about.
    pub policy: MemoryPolicy,
    /// For some of it; of several rules that are about the same memory, the first one counts.
    pub rules: Vec<PlacementRule>,
}

/// Where some memory is placed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementRule {
    /// The file name of the library that the addresses are in; `None` for the executable.
    pub library: Option<String>,
    /// Which memory.
    pub memory: RuleMemory,
    /// Its homes; `None` for those that it would have without the rule.
    pub target: Option<PlacementTarget>,
    /// A node that reads one of its pages gets those around it as well.
    pub replicate: bool,
}

/// Where a rule places memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PlacementTarget {
    /// By policy.
    Policy(MemoryPolicy),
    /// Part by part.
    Parts(Vec<PlacementPart>),
}

/// Which memory a rule is about. Addresses are those in the file, as the linker gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleMemory {
    /// A global variable.
    Variable(Range<u64>),
    /// Blocks that are allocated by calls from this code.
    Site {
        /// Where the calls are: the address before the one that a call returns to is in one of these ranges.
        calls: Vec<Range<u64>>,
        /// Where the calls around those are; `None` if that does not matter.
        callers: Option<Vec<Range<u64>>>,
        /// Fewest and most bytes of such an allocation.
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

/// The nodes of a run as a machine: each has its processors, and its part of the span as memory.
#[must_use]
pub fn machine(nodes: u16, processors_each: u16, span: u64) -> Machine {
    // More than sets can hold would only be numbers: threads are placed on nodes.
    let most = u16::try_from(MAX_PROCESSORS / usize::from(nodes)).unwrap_or(u16::MAX);
    let memory = Bytes(span / u64::from(nodes));
    Machine { view: View::Cluster, ..Machine::uniform(nodes, processors_each.min(most), memory) }
}
