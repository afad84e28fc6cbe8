//! Which node each page of a region is on.

use crate::{MemoryPolicy, RSet};
use gondwana_topology::{Id, MAX_NODES, Machine, NodeId, NodeSet, ProcessorSet};
use serde::{Deserialize, Serialize};

/// A memory policy for a resource set on a machine, ready to be asked about any page.
///
/// Answers take a few nanoseconds, allocate nothing and depend on nothing but the arguments: every node of a cluster
/// gives the same ones.
#[derive(Clone, Debug)]
pub struct Placement {
    policy: MemoryPolicy,
    /// The nodes that pages may be on, in ascending order.
    nodes: Vec<NodeId>,
    /// For each node that a thread may be on, which one its pages are on if that depends on it.
    for_touching: Box<[NodeId; MAX_NODES]>,
    /// Where each part of a region ends that is given page by page, and its node; else empty.
    parts: Vec<(u64, NodeId)>,
}

/// Consecutive pages of a region that are on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlacementPart {
    /// How many they are.
    pub pages: u64,
    /// The node.
    pub node: NodeId,
}

/// Why pages can't be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// There is no memory to place pages in.
    #[error("the resource set {0} has no memory")]
    NoMemory(Box<RSet>),
    /// There are no processors to run threads on.
    #[error("the resource set {0} has no processors")]
    NoProcessors(Box<RSet>),
    /// The set has what the machine hasn't.
    #[error("the machine doesn't have {0}")]
    NotInMachine(Box<RSet>),
    /// The policy asks for what isn't in the set.
    #[error("{asked} is asked for, which isn't in the resource set {rset}")]
    Outside {
        /// What isn't there.
        asked: Box<RSet>,
        /// The set.
        rset: Box<RSet>,
    },
    /// There is no memory that is remote.
    #[error("no memory of the resource set {0} is remote: it is all on the node of its processors")]
    NothingRemote(Box<RSet>),
    /// Threads are to be placed in one of no sets.
    #[error("no resource set is named for threads to run in")]
    NoSets,
}

impl PlacementError {
    pub(crate) fn outside(asked: RSet, rset: &RSet) -> Self {
        Self::Outside { asked: Box::new(asked), rset: Box::new(*rset) }
    }
}

/// Consecutive pages that are on the same node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// The first page.
    pub first: u64,
    /// How many they are.
    pub count: u64,
    /// The node; `None` where the system chooses.
    pub node: Option<NodeId>,
}

impl Placement {
    /// Prepares to place pages. Refuses what can't be done.
    pub fn new(policy: MemoryPolicy, rset: &RSet, machine: &Machine) -> Result<Self, PlacementError> {
        check_in_machine(rset, machine)?;
        let mut nodes = *rset.memory();
        if nodes.is_empty() {
            return Err(PlacementError::NoMemory(Box::new(*rset)));
        }
        if let MemoryPolicy::Explicit(wanted) = policy {
            let asked = RSet::new(ProcessorSet::EMPTY, wanted);
            if !nodes.contains_all(&wanted) {
                return Err(PlacementError::outside(asked.difference(rset), rset));
            }
            if wanted.is_empty() {
                return Err(PlacementError::NoMemory(Box::new(asked)));
            }
            nodes = wanted;
        }
        if policy == MemoryPolicy::Remote
            && machine.nodes_of(rset.processors()).iter().any(|at| nodes.is_subset_of(at))
        {
            return Err(PlacementError::NothingRemote(Box::new(*rset)));
        }
        let for_touching = Box::new(std::array::from_fn(|index| {
            let touching = NodeId::from_index(index);
            match policy {
                MemoryPolicy::Remote => next_after(touching, &nodes),
                _ => machine.nearest(touching, &nodes).unwrap_or(touching),
            }
        }));
        Ok(Self { policy, nodes: nodes.iter().collect(), for_touching, parts: vec![] })
    }

    /// Prepares to place pages part by part. Pages behind the last part are where that is. Refuses nodes that aren't in
    /// the set; without parts, nothing is placed.
    pub fn of_parts(parts: &[PlacementPart], rset: &RSet, machine: &Machine) -> Result<Self, PlacementError> {
        let nodes: NodeSet = parts.iter().map(|part| part.node).collect();
        let placement = Self::new(MemoryPolicy::Explicit(nodes), rset, machine)?;
        let ends = parts.iter().scan(0_u64, |end, part| {
            *end = end.saturating_add(part.pages);
            Some((*end, part.node))
        });
        Ok(Self { parts: ends.collect(), ..placement })
    }

    /// The policy. Of parts, the nodes that they are on.
    #[must_use]
    pub fn policy(&self) -> MemoryPolicy {
        self.policy
    }

    /// The nodes that pages may be on, in ascending order: all memory of the resource set, or what is explicitly asked
    /// for of it. For [`MemoryPolicy::Float`], too, the system may choose only among them.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// True if the node of a page depends on the thread that touches it first.
    #[must_use]
    pub fn follows_touch(&self) -> bool {
        matches!(self.policy, MemoryPolicy::Local | MemoryPolicy::Remote | MemoryPolicy::Explicit(_))
            && self.parts.is_empty()
    }

    /// The node of page number `page` of a region of `pages` pages that a thread on node `touching` touches first;
    /// `None` where the system is to choose (only with [`MemoryPolicy::Float`]).
    ///
    /// A page beyond the end of the region is where the last one is, or where it would be in a longer region.
    ///
    /// # Examples
    /// ```
    /// use gondwana_rset::{MemoryPolicy, Placement, RSet};
    /// use gondwana_topology::{Bytes, Machine, NodeId};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// let placement = Placement::new(MemoryPolicy::Block, &RSet::global(&machine), &machine)?;
    /// let nodes = (0..4).filter_map(|page| placement.node_of(page, 4, NodeId(0)));
    /// assert!(nodes.eq([0, 0, 1, 1].map(NodeId)));
    /// # Ok::<(), gondwana_rset::PlacementError>(())
    /// ```
    #[must_use]
    pub fn node_of(&self, page: u64, pages: u64, touching: NodeId) -> Option<NodeId> {
        if let Some(last) = self.parts.last() {
            let part = self.parts.partition_point(|(end, _)| *end <= page);
            return Some(self.parts.get(part).unwrap_or(last).1);
        }
        let count = self.nodes.len() as u64;
        let nth = |index: u64| self.nodes.get(usize::try_from(index).ok()?).copied();
        match self.policy {
            MemoryPolicy::Float => None,
            MemoryPolicy::Local | MemoryPolicy::Remote | MemoryPolicy::Explicit(_) => {
                Some(self.for_touching[touching.index() % MAX_NODES])
            }
            MemoryPolicy::Striped(stride) => nth(page / stride % count),
            MemoryPolicy::Block => {
                let page = page.min(pages.saturating_sub(1));
                let index = u128::from(page) * u128::from(count) / u128::from(pages.max(1));
                nth(u64::try_from(index).expect("below the number of nodes"))
            }
        }
    }

    /// The region as runs of pages that are on the same node, in order.
    ///
    /// # Examples
    /// ```
    /// use gondwana_rset::{MemoryPolicy, Placement, RSet};
    /// use gondwana_topology::{Bytes, Machine, NodeId};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// let placement = Placement::new(MemoryPolicy::Block, &RSet::global(&machine), &machine)?;
    /// let counts: Vec<u64> = placement.runs(10, NodeId(0)).map(|range| range.count).collect();
    /// assert_eq!(counts, [5, 5]);
    /// # Ok::<(), gondwana_rset::PlacementError>(())
    /// ```
    pub fn runs(&self, pages: u64, touching: NodeId) -> impl Iterator<Item = PageRange> + '_ {
        let mut first = 0;
        std::iter::from_fn(move || {
            (first < pages).then(|| {
                let end = self.end_of_run(first, pages);
                let run = PageRange { first, count: end - first, node: self.node_of(first, pages, touching) };
                first = end;
                run
            })
        })
    }

    /// The first page after `page` that may be on another node.
    fn end_of_run(&self, page: u64, pages: u64) -> u64 {
        match self.policy {
            _ if self.nodes.len() == 1 => pages,
            _ if !self.parts.is_empty() => {
                let node = self.node_of(page, pages, NodeId(0));
                let others = self.parts.iter().filter(|(end, _)| *end > page);
                // The end of a part whose successor is on another node.
                let ends = others.clone().zip(others.skip(1));
                let mut ends = ends.filter(|(_, next)| Some(next.1) != node);
                ends.next().map_or(pages, |((end, _), _)| (*end).min(pages))
            }
            MemoryPolicy::Striped(stride) => (page / stride + 1).saturating_mul(stride.get()).min(pages),
            MemoryPolicy::Block => {
                // The smallest number whose part is the next one.
                let (count, all) = (self.nodes.len() as u128, u128::from(pages));
                let next_part = u128::from(page) * count / all + 1;
                u64::try_from((next_part * all).div_ceil(count)).map_or(pages, |end| end.min(pages))
            }
            _ => pages,
        }
    }
}

/// Refuses sets that aren't in the machine.
pub(crate) fn check_in_machine(rset: &RSet, machine: &Machine) -> Result<(), PlacementError> {
    let missing = rset.difference(&RSet::global(machine));
    if missing.is_empty() { Ok(()) } else { Err(PlacementError::NotInMachine(Box::new(missing))) }
}

/// The first node after this one; after the last comes the first.
fn next_after(touching: NodeId, nodes: &NodeSet) -> NodeId {
    let others = nodes.difference(&NodeSet::only(touching));
    let next = others.iter().find(|node| *node > touching).or(others.first());
    next.unwrap_or(touching)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
