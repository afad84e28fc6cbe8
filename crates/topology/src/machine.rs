use crate::{Bytes, MAX_NODES, MAX_PROCESSORS, NodeId, NodeSet, ProcessorId, ProcessorSet};
use gondwana_page::PAGE_SIZE;
use serde::{Deserialize, Serialize};

/// Where the knowledge about a machine comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The computer that this runs on: nodes are its NUMA domains.
    Host,
    /// A running cluster: nodes are its processes.
    Cluster,
    /// A file.
    #[default]
    Described,
}

/// A machine: nodes with processors and memory, and how far they are from each other.
///
/// Who fills one in by hand calls [`Machine::check`] before others rely on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What people call it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where this comes from.
    #[serde(default)]
    pub view: View,
    /// Bytes in a page.
    #[serde(default = "usual_page_size")]
    pub page_size: Bytes,
    /// What this process may use of it, where something else has limited that.
    #[serde(default)]
    pub limits: Limits,
    /// Processors that share a core, one set for each core. Processors in none of them are cores of their own.
    #[serde(default)]
    pub cores: Vec<ProcessorSet>,
    /// Processors in one package ("socket"), one set for each; none where that is unknown.
    #[serde(default)]
    pub packages: Vec<ProcessorSet>,
    /// The nodes, in ascending order of their numbers; numbers may be missing.
    #[serde(rename = "node")]
    pub nodes: Vec<MachineNode>,
    /// Caches, one for each piece of hardware.
    #[serde(default, rename = "cache")]
    pub caches: Vec<Cache>,
}

fn usual_page_size() -> Bytes {
    Bytes(PAGE_SIZE as u64)
}

/// One node: processors and memory that are near each other. Either may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineNode {
    /// Its number.
    pub id: NodeId,
    /// Its computer or the like, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Its processors; none in a memory-only node.
    #[serde(default)]
    pub processors: ProcessorSet,
    /// Distances to all nodes of the machine in the order of [`Machine::nodes`], as firmware states them: 10 is
    /// local. Empty: 10 to itself and 20 to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<u32>,
    /// Its memory.
    #[serde(default)]
    pub memory: Memory,
}

/// Memory of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// All of it; nothing in a node without memory.
    #[serde(default)]
    pub total: Bytes,
    /// What was free when somebody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<Bytes>,
    /// Pages that were set aside, one entry for each size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub huge: Vec<HugePages>,
}

/// Huge pages of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HugePages {
    /// Bytes in one.
    pub size: Bytes,
    /// How many there are.
    pub total: u64,
    /// How many nobody uses.
    #[serde(default)]
    pub free: u64,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    #[default]
    Unified,
}

/// One cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 1 is next to the processor.
    pub level: u8,
    /// What it holds.
    #[serde(default)]
    pub kind: CacheKind,
    /// Its capacity.
    pub size: Bytes,
    /// Bytes in a line; 0 where that is unknown.
    #[serde(default)]
    pub line: u32,
    /// Lines in a set (associativity); 0 where that is unknown.
    #[serde(default)]
    pub ways: u32,
    /// The processors that share it.
    pub processors: ProcessorSet,
}

/// What a process may use, as cpusets, control groups and affinity have it. What is `None` isn't limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Where its threads may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorSet>,
    /// The nodes whose memory it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeSet>,
    /// How much memory it may have in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// How many processors' worth of time it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_time: Option<f64>,
}

impl Machine {
    /// A machine of equal nodes that are numbered from 0 and have consecutive processors.
    ///
    /// # Panics
    ///
    /// If there are no nodes or processors, or more than [`MAX_NODES`] nodes or [`MAX_PROCESSORS`] processors.
    ///
    /// # Examples
    /// ```
    /// use gondwana_topology::{Bytes, Machine, NodeId, ProcessorId};
    ///
    /// let machine = Machine::uniform(4, 2, Bytes(1 << 30));
    /// assert_eq!(machine.processors().len(), 8);
    /// assert_eq!(machine.node_of(ProcessorId(5)), Some(NodeId(2)));
    /// ```
    #[must_use]
    pub fn uniform(nodes: u16, processors_each: u16, memory_each: Bytes) -> Self {
        let processors = usize::from(nodes) * usize::from(processors_each);
        assert!(
            (1..=MAX_NODES).contains(&usize::from(nodes)) && (1..=MAX_PROCESSORS).contains(&processors),
            "{nodes} nodes of {processors_each} processors are no machine"
        );
        let node = |number: u16| MachineNode {
            id: NodeId(number),
            processors: (number * processors_each..(number + 1) * processors_each).map(ProcessorId).collect(),
            memory: Memory { total: memory_each, ..Memory::default() },
            ..MachineNode::default()
        };
        Self { page_size: usual_page_size(), nodes: (0..nodes).map(node).collect(), ..Self::default() }
    }

    /// The node with this number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&MachineNode> {
        self.position(id).map(|position| &self.nodes[position])
    }

    fn position(&self, id: NodeId) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// All nodes.
    #[must_use]
    pub fn node_ids(&self) -> NodeSet {
        self.nodes.iter().map(|node| node.id).collect()
    }

    /// The nodes that have memory.
    #[must_use]
    pub fn memory_nodes(&self) -> NodeSet {
        self.nodes.iter().filter(|node| node.memory.total > Bytes(0)).map(|node| node.id).collect()
    }

    /// All processors.
    #[must_use]
    pub fn processors(&self) -> ProcessorSet {
        self.nodes.iter().fold(ProcessorSet::EMPTY, |all, node| all.union(&node.processors))
    }

    /// The processors that this process may use.
    #[must_use]
    pub fn allowed_processors(&self) -> ProcessorSet {
        let all = self.processors();
        self.limits.processors.map_or(all, |allowed| all.intersection(&allowed))
    }

    /// The nodes whose memory this process may use.
    #[must_use]
    pub fn allowed_memory_nodes(&self) -> NodeSet {
        let all = self.memory_nodes();
        self.limits.nodes.map_or(all, |allowed| all.intersection(&allowed))
    }

    /// The node that a processor is in.
    #[must_use]
    pub fn node_of(&self, processor: ProcessorId) -> Option<NodeId> {
        self.nodes.iter().find(|node| node.processors.contains(processor)).map(|node| node.id)
    }

    /// The nodes that these processors are in.
    #[must_use]
    pub fn nodes_of(&self, processors: &ProcessorSet) -> NodeSet {
        self.nodes.iter().filter(|node| node.processors.intersects(processors)).map(|node| node.id).collect()
    }

    /// How far one node is from another: 10 is local. `None` if either isn't in the machine.
    #[must_use]
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let (from, to) = (self.position(from)?, self.position(to)?);
        let usual = if from == to { LOCAL } else { REMOTE };
        Some(self.nodes[from].distances.get(to).copied().unwrap_or(usual))
    }

    /// The nearest of some nodes to one: itself before any other, and of those equally near the one with the lowest
    /// number. A node that the machine doesn't have is near to none.
    ///
    /// # Examples
    /// ```
    /// use gondwana_topology::{Bytes, Machine, NodeId};
    ///
    /// let machine = Machine::uniform(4, 2, Bytes(1 << 30));
    /// assert_eq!(machine.nearest(NodeId(2), &"1-3".parse()?), Some(NodeId(2)));
    /// assert_eq!(machine.nearest(NodeId(0), &"1-3".parse()?), Some(NodeId(1)));
    /// # Ok::<(), gondwana_topology::ListError>(())
    /// ```
    #[must_use]
    pub fn nearest(&self, to: NodeId, among: &NodeSet) -> Option<NodeId> {
        among.iter().min_by_key(|node| (*node != to, self.distance(to, *node).unwrap_or(u32::MAX)))
    }
}

/// What firmware says of a node's own memory.
const LOCAL: u32 = 10;
/// What kernels assume of other nodes' memory where firmware says nothing.
const REMOTE: u32 = 20;
