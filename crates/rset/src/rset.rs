use gondwana_topology::{Bytes, Machine, NodeId, NodeSet, ProcessorId, ProcessorSet};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that a resource set may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A processor.
    Processor(ProcessorId),
    /// The memory of a node.
    Memory(NodeId),
}

/// A set of processors and of memory, the latter by nodes.
///
/// A plain value of fixed size: no operation allocates. What AIX does with the verbs of `rs_op`, `rs_getinfo` and
/// `rs_init` is here:
///
/// | AIX | |
/// |---|---|
/// | `RS_UNION`, `RS_INTERSECTION`, `RS_EXCLUSION` | [`union`](Self::union), [`intersection`](Self::intersection), [`difference`](Self::difference) |
/// | `RS_COPY`, `RS_ISEQUAL` | assignment, `==` |
/// | `RS_ISEMPTY`, `RS_ISCONTAINED` | [`is_empty`](Self::is_empty), [`contains`](Self::contains) (of the larger set) |
/// | `RS_TESTRESOURCE`, `RS_ADDRESOURCE`, `RS_DELRESOURCE` | [`has`](Self::has), [`add`](Self::add), [`remove`](Self::remove) |
/// | `RS_STARTOVER`, `RS_NEXT_RESOURCE`... | [`resources`](Self::resources) |
/// | `RS_EMPTY`, `RS_ALL` | [`EMPTY`](Self::EMPTY), [`global`](Self::global) |
/// | `R_NUMPROCS`, `R_MEMSIZE` | [`processors`](Self::processors)`.len()`, [`memory_total`](Self::memory_total) |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RSet {
    #[serde(default)]
    processors: ProcessorSet,
    #[serde(default)]
    memory: NodeSet,
}

impl RSet {
    /// The set without resources.
    pub const EMPTY: Self = Self { processors: ProcessorSet::EMPTY, memory: NodeSet::EMPTY };

    /// The set of these processors and the memory of these nodes.
    #[must_use]
    pub fn new(processors: ProcessorSet, memory: NodeSet) -> Self {
        Self { processors, memory }
    }

    /// Everything in the machine.
    #[must_use]
    pub fn global(machine: &Machine) -> Self {
        Self::new(machine.processors(), machine.memory_nodes())
    }

    /// Everything in the machine that this process may use.
    #[must_use]
    pub fn allowed(machine: &Machine) -> Self {
        Self::new(machine.allowed_processors(), machine.allowed_memory_nodes())
    }

    /// All processors and all memory of some nodes.
    #[must_use]
    pub fn of_nodes(machine: &Machine, nodes: &NodeSet) -> Self {
        let mut set = Self::EMPTY;
        for node in machine.nodes.iter().filter(|node| nodes.contains(node.id)) {
            set.processors = set.processors.union(&node.processors);
        }
        set.memory = machine.memory_nodes().intersection(nodes);
        set
    }

    /// Some processors, and the memory nearest to each of them: usually that of its node.
    #[must_use]
    pub fn of_processors(machine: &Machine, processors: &ProcessorSet) -> Self {
        let everywhere = machine.memory_nodes();
        let near = machine.nodes_of(processors).iter().filter_map(|node| machine.nearest(node, &everywhere));
        Self::new(*processors, near.collect())
    }

    /// The processors.
    #[must_use]
    pub fn processors(&self) -> &ProcessorSet {
        &self.processors
    }

    /// The nodes whose memory is in the set.
    #[must_use]
    pub fn memory(&self) -> &NodeSet {
        &self.memory
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.processors.union(&other.processors), self.memory.union(&other.memory))
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::new(self.processors.intersection(&other.processors), self.memory.intersection(&other.memory))
    }

    /// What is here and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self::new(self.processors.difference(&other.processors), self.memory.difference(&other.memory))
    }

    /// True if everything that `other` has is here too.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.processors.contains_all(&other.processors) && self.memory.contains_all(&other.memory)
    }

    /// True if there is something that both have.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.processors.intersects(&other.processors) || self.memory.intersects(&other.memory)
    }

    /// True if there is nothing in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processors.is_empty() && self.memory.is_empty()
    }

    /// True if this is in the set.
    #[must_use]
    pub fn has(&self, resource: Resource) -> bool {
        match resource {
            Resource::Processor(processor) => self.processors.contains(processor),
            Resource::Memory(node) => self.memory.contains(node),
        }
    }

    /// Puts one thing in; true if it wasn't there.
    ///
    /// # Panics
    ///
    /// If its number is beyond what sets can hold.
    pub fn add(&mut self, resource: Resource) -> bool {
        match resource {
            Resource::Processor(processor) => self.processors.insert(processor),
            Resource::Memory(node) => self.memory.insert(node),
        }
    }

    /// Takes one thing out; true if it was there.
    pub fn remove(&mut self, resource: Resource) -> bool {
        match resource {
            Resource::Processor(processor) => self.processors.remove(processor),
            Resource::Memory(node) => self.memory.remove(node),
        }
    }

    /// Everything in the set: processors, then memory, in ascending order.
    pub fn resources(&self) -> impl Iterator<Item = Resource> + use<> {
        self.processors.iter().map(Resource::Processor).chain(self.memory.iter().map(Resource::Memory))
    }

    /// How much memory is in the set.
    #[must_use]
    pub fn memory_total(&self, machine: &Machine) -> Bytes {
        let nodes = machine.nodes.iter().filter(|node| self.memory.contains(node.id));
        Bytes(nodes.fold(0, |sum, node| sum.saturating_add(node.memory.total.0)))
    }
}

/// A text that [`RSet::parse`] takes and that says the same on every machine: `proc:0-3|mem:0`.
impl fmt::Display for RSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.processors.is_empty(), self.memory.is_empty()) {
            (true, true) => f.write_str("none"),
            (false, true) => write!(f, "proc:{}", self.processors),
            (true, false) => write!(f, "mem:{}", self.memory),
            (false, false) => write!(f, "proc:{}|mem:{}", self.processors, self.memory),
        }
    }
}
