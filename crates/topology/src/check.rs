//! What must be so in a machine and can't be said by types.

use crate::{Bytes, Machine, NodeId, ProcessorSet};
use std::fmt;

/// Something about a machine that can't be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of thing, as descriptions name it (`node`), and which of them, from 0.
    pub of: Option<(&'static str, usize)>,
    /// The field of it.
    pub field: &'static str,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((kind, index)) = self.of {
            write!(f, "{kind}[{index}].")?;
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for Problem {}

fn problem(
    of: impl Into<Option<(&'static str, usize)>>,
    field: &'static str,
    message: impl Into<String>,
) -> Result<(), Problem> {
    Err(Problem { of: of.into(), field, message: message.into() })
}

impl Machine {
    /// Finds the first thing that can't be.
    pub fn check(&self) -> Result<(), Problem> {
        if self.nodes.is_empty() {
            return problem(None, "node", "a machine has one node at least");
        }
        if !self.page_size.0.is_power_of_two() {
            return problem(None, "page_size", format!("{} is no power of two", self.page_size.0));
        }
        self.check_nodes()?;
        let all = self.processors();
        if all.is_empty() {
            return problem(("node", 0), "processors", "no node of the machine has a processor");
        }
        check_parts("cores", &self.cores, &all)?;
        check_parts("packages", &self.packages, &all)?;
        for (index, cache) in self.caches.iter().enumerate() {
            let of = ("cache", index);
            if cache.level == 0 {
                return problem(of, "level", "levels begin with 1, next to the processor");
            }
            if cache.size == Bytes(0) {
                return problem(of, "size", "a cache has a size");
            }
            check_processors(Some(of), "processors", &cache.processors, &all)?;
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), Problem> {
        let mut seen = ProcessorSet::EMPTY;
        let mut before: Option<NodeId> = None;
        for (index, node) in self.nodes.iter().enumerate() {
            let of = ("node", index);
            if node.id.index() >= crate::MAX_NODES {
                let message =
                    format!("node {} is beyond the last possible one, {}", node.id, crate::MAX_NODES - 1);
                return problem(of, "id", message);
            }
            if before.is_some_and(|before| before >= node.id) {
                return problem(of, "id", format!("node {} is not in ascending order", node.id));
            }
            before = Some(node.id);
            let shared = seen.intersection(&node.processors);
            if !shared.is_empty() {
                return problem(of, "processors", format!("another node has processors {shared} too"));
            }
            seen = seen.union(&node.processors);
            if node.processors.is_empty() && node.memory.total == Bytes(0) {
                return problem(of, "memory", format!("node {} has neither processors nor memory", node.id));
            }
            if node.memory.free.is_some_and(|free| free > node.memory.total) {
                return problem(of, "memory", "more is free than there is");
            }
            if let Some(huge) = node.memory.huge.iter().find(|huge| huge.free > huge.total) {
                return problem(of, "memory", format!("more pages of {} are free than there are", huge.size));
            }
            self.check_distances(index)?;
        }
        Ok(())
    }

    fn check_distances(&self, index: usize) -> Result<(), Problem> {
        let row = &self.nodes[index].distances;
        let of = ("node", index);
        if row.is_empty() {
            return Ok(());
        }
        if row.len() != self.nodes.len() {
            let message = format!("{} distances for {} nodes", row.len(), self.nodes.len());
            return problem(of, "distances", message);
        }
        match row.iter().position(|distance| *distance < row[index]) {
            Some(nearer) => {
                let message = format!("node {} is nearer than the node itself", self.nodes[nearer].id);
                problem(of, "distances", message)
            }
            None => Ok(()),
        }
    }
}

/// Parts into which processors are divided: each processor is in one at most.
fn check_parts(field: &'static str, parts: &[ProcessorSet], all: &ProcessorSet) -> Result<(), Problem> {
    let mut seen = ProcessorSet::EMPTY;
    for part in parts {
        check_processors(None, field, part, all)?;
        let twice = seen.intersection(part);
        if !twice.is_empty() {
            return problem(None, field, format!("processors {twice} are in two of them"));
        }
        seen = seen.union(part);
    }
    Ok(())
}

fn check_processors(
    of: Option<(&'static str, usize)>,
    field: &'static str,
    some: &ProcessorSet,
    all: &ProcessorSet,
) -> Result<(), Problem> {
    let unknown = some.difference(all);
    if !unknown.is_empty() {
        return problem(of, field, format!("processors {unknown} are in no node"));
    }
    if some.is_empty() { problem(of, field, "no processor is named") } else { Ok(()) }
}
