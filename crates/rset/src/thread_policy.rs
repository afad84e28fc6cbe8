//! Which processors threads run on.

use crate::placement::check_in_machine;
use crate::{PlacementError, RSet, Registry, TextError};
use gondwana_topology::{Machine, NodeId, NodeSet, ProcessorId, ProcessorSet};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How threads are spread over the processors of a resource set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadPolicy {
    /// As many on a node as it has processors, before the next node.
    #[default]
    Fill,
    /// The first on the first node, the second on the second and so on, again and again.
    RoundRobin,
    /// The first in the first of these sets, the second in the second and so on, again and again.
    Explicit(Vec<RSet>),
}

/// What a person writes: sets have `;` between them.
impl fmt::Display for ThreadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fill => f.write_str("fill"),
            Self::RoundRobin => f.write_str("round-robin"),
            Self::Explicit(sets) => {
                let texts: Vec<String> = sets.iter().map(RSet::to_string).collect();
                f.write_str(&texts.join(";"))
            }
        }
    }
}

impl ThreadPolicy {
    /// Reads `fill`, `round-robin`, or resource sets with processors, separated by `;`.
    pub fn parse(text: &str, machine: &Machine, registry: &Registry) -> Result<Self, TextError> {
        match text.trim() {
            "fill" => return Ok(Self::Fill),
            "round-robin" => return Ok(Self::RoundRobin),
            _ => {}
        }
        let mut sets = Vec::new();
        let mut at = 0;
        for part in text.split(';') {
            let set = RSet::parse(part, machine, registry).map_err(|error| error.within(text, at))?;
            if set.processors().is_empty() {
                return Err(TextError::new(text, at, part.len(), "this set has no processors"));
            }
            sets.push(set);
            at += part.len() + 1;
        }
        Ok(Self::Explicit(sets))
    }
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPlace {
    /// The node.
    pub node: NodeId,
    /// One processor of it, for those who bind threads as tightly as that.
    pub processor: ProcessorId,
}

/// A thread policy for a resource set on a machine, ready to be asked about any thread.
#[derive(Clone, Debug)]
pub struct ThreadPlan {
    policy: ThreadPolicy,
    /// The processors of each node in the order in which they are used; for explicit sets, of each set.
    groups: Vec<Vec<ThreadPlace>>,
    /// How many there are in all groups.
    processors: usize,
}

impl ThreadPlan {
    /// Prepares to place threads. Refuses what can't be done.
    pub fn new(policy: ThreadPolicy, rset: &RSet, machine: &Machine) -> Result<Self, PlacementError> {
        check_in_machine(rset, machine)?;
        if rset.processors().is_empty() {
            return Err(PlacementError::NoProcessors(Box::new(*rset)));
        }
        let groups: Vec<Vec<ThreadPlace>> = match &policy {
            ThreadPolicy::Fill | ThreadPolicy::RoundRobin => {
                by_node(rset.processors(), machine).filter(|group| !group.is_empty()).collect()
            }
            ThreadPolicy::Explicit(sets) => {
                let groups: Result<_, _> = sets.iter().map(|set| explicit(set, rset, machine)).collect();
                groups?
            }
        };
        if groups.is_empty() {
            return Err(PlacementError::NoSets);
        }
        let processors = groups.iter().map(Vec::len).sum();
        Ok(Self { policy, groups, processors })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &ThreadPolicy {
        &self.policy
    }

    /// How many different processors there are to choose from.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Where thread number `thread` runs, counted from 0 in the order of creation.
    ///
    /// # Examples
    /// ```
    /// use gondwana_rset::{RSet, ThreadPlan, ThreadPolicy};
    /// use gondwana_topology::{Bytes, Machine, NodeId};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// let plan = ThreadPlan::new(ThreadPolicy::RoundRobin, &RSet::global(&machine), &machine)?;
    /// assert_eq!([0, 1, 2].map(|thread| plan.place_of(thread).node), [0, 1, 0].map(NodeId));
    /// # Ok::<(), gondwana_rset::PlacementError>(())
    /// ```
    #[must_use]
    pub fn place_of(&self, thread: usize) -> ThreadPlace {
        if self.policy == ThreadPolicy::Fill {
            let mut index = thread % self.processors;
            for group in &self.groups {
                match group.get(index) {
                    Some(place) => return *place,
                    None => index -= group.len(),
                }
            }
        }
        let group = &self.groups[thread % self.groups.len()];
        group[thread / self.groups.len() % group.len()]
    }
}

fn explicit(set: &RSet, within: &RSet, machine: &Machine) -> Result<Vec<ThreadPlace>, PlacementError> {
    if set.processors().is_empty() {
        return Err(PlacementError::NoProcessors(Box::new(*set)));
    }
    let excess = set.processors().difference(within.processors());
    if !excess.is_empty() {
        return Err(PlacementError::outside(RSet::new(excess, NodeSet::EMPTY), within));
    }
    Ok(by_node(set.processors(), machine).flatten().collect())
}

/// Some processors by node: one of each core, then the second of each core and so on, because a thread that has a core
/// for itself is faster.
fn by_node<'a>(some: &'a ProcessorSet, machine: &'a Machine) -> impl Iterator<Item = Vec<ThreadPlace>> + 'a {
    machine.nodes.iter().map(|node| {
        let here = node.processors.intersection(some);
        let mut ordered: Vec<(usize, ProcessorId)> =
            here.iter().map(|processor| (sharing_before(processor, &here, machine), processor)).collect();
        ordered.sort_unstable();
        ordered.into_iter().map(|(_, processor)| ThreadPlace { node: node.id, processor }).collect()
    })
}

/// How many of these processors share a core with this one and have lower numbers.
fn sharing_before(processor: ProcessorId, among: &ProcessorSet, machine: &Machine) -> usize {
    let core = machine.cores.iter().find(|core| core.contains(processor));
    core.map_or(0, |core| core.intersection(among).iter().take_while(|other| *other < processor).count())
}

#[cfg(test)]
#[path = "thread_policy_tests.rs"]
mod tests;
