//! What must hold of `c11` machines when nothing is under way.

use crate::world::{Machine, Node};
use gondwana_coherence::{C11, Csm, Layout, Page, PageKind, Sc};

impl Machine for C11 {
    fn agree(nodes: &[Node<Self>], page: Page, layout: &Layout) -> Result<(), String> {
        let kinds: Vec<PageKind> = nodes.iter().map(|node| node.machine.kind(page)).collect();
        let Some((&kind, others)) = kinds.split_first() else { return Ok(()) };
        if kind == PageKind::Leaving || others.iter().any(|&other| other != kind) {
            return Err(format!("page {}: {kinds:?}", page.0));
        }
        if kind == PageKind::Ordinary {
            Csm::agree(&parts(nodes, C11::ordinary), page, layout)
        } else {
            Sc::agree(&parts(nodes, C11::synchronisation), page, layout)
        }
    }

    fn is_quiet(&self) -> bool {
        Self::is_quiet(self)
    }

    fn is_holding(&self) -> bool {
        self.synchronisation().is_holding()
    }
}

/// The nodes, as if they had only one part of their machines.
fn parts<P: Clone>(nodes: &[Node<C11>], part: impl Fn(&C11) -> &P) -> Vec<Node<P>> {
    let only = |node: &Node<C11>| Node { machine: part(&node.machine).clone(), memory: node.memory.clone() };
    nodes.iter().map(only).collect()
}
