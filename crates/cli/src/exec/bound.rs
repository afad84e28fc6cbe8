//! Programs with memory bound to certain nodes: the kernel kills them when these nodes are full.

use super::rules::Rules;
use gondwana_host::sys::Policy;
use gondwana_host::{Asked, Binding, Shortage};
use gondwana_launcher::process::events::End;
use gondwana_rset::RSet;
use gondwana_topology::{Bytes, NodeSet, ProcessorSet};
use std::ffi::OsStr;

/// A program with memory that is bound to certain nodes.
#[derive(Debug)]
pub(super) struct Bound {
    shortage: Shortage,
    /// Its processors.
    processors: ProcessorSet,
    /// Sets of nodes that only allocations are bound to.
    by_rules_only: Vec<NodeSet>,
}

impl Bound {
    /// The bindings, if there are any; watching starts now. With `strict` allocations are bound too.
    pub(super) fn find(asked: &Asked, rules: &Rules<'_>, strict: bool) -> Option<Self> {
        let nodes = |binding: &Binding| match binding.policy {
            Policy::Bind(nodes) => Some(nodes),
            _ => None,
        };
        let threads = asked.threads.iter().flat_map(|threads| threads.bindings());
        let bound: Vec<NodeSet> =
            [asked.process].into_iter().chain(threads).filter_map(|binding| nodes(&binding)).collect();
        let by_rules: Vec<NodeSet> = if strict { rules.nodes().collect() } else { vec![] };
        let shortage = Shortage::watch(bound.iter().chain(&by_rules).copied())?;
        let by_rules_only = by_rules.into_iter().filter(|nodes| !bound.contains(nodes)).collect();
        Some(Self { shortage, processors: asked.process.processors, by_rules_only })
    }

    /// If the program was killed for lack of memory: why, and what to do. It had at most `most` bytes.
    pub(super) fn why(&self, name: &OsStr, end: End, most: Bytes) -> Option<String> {
        let lacking = self.shortage.found(most).filter(|_| end != End::Exited(0))?;
        let what = match end {
            End::Signalled(libc::SIGKILL) => name.display().to_string(),
            _ => format!("a process of {}", name.display()),
        };
        let advice = if self.by_rules_only.contains(&lacking) {
            "without --strict, allocations go to other nodes then".to_owned()
        } else {
            let larger = RSet::new(self.processors, self.shortage.allowed());
            format!("with --rset '{larger}' --memory local, the nearest nodes come first and the others then")
        };
        Some(format!(
            "{what} was ended by the kernel because node {lacking}, which its memory must come from, had none left: \
             {advice}"
        ))
    }
}
