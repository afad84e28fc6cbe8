//! What must hold of `erc` machines when nothing is under way.

use crate::world::{Machine, Node};
use gondwana_coherence::{Access, Erc, ErcState, Layout, Page};
use gondwana_topology::{Id, NodeId, NodeSet};

impl Machine for Erc {
    fn agree(nodes: &[Node<Self>], page: Page, layout: &Layout) -> Result<(), String> {
        let views: Vec<_> = nodes.iter().map(|node| node.machine.page(page)).collect();
        let fail = |what: &str| Err(format!("page {}: {what}: {views:?}", page.0));
        let owner = views[layout.manager(page).index()].owner;
        let mut copies = NodeSet::EMPTY;
        for (node, view) in views.iter().enumerate() {
            let id = NodeId::from_index(node);
            let right = match view.state {
                ErcState::None => Access::None,
                ErcState::Read | ErcState::Clean => Access::Read,
                ErcState::Dirty | ErcState::Exclusive => Access::Write,
            };
            if nodes[node].memory.access[page.0 as usize] != right {
                return fail("a protection doesn't fit its state");
            }
            if view.state.is_owner() != (owner == Some(id)) {
                return fail("the manager is wrong about the owner");
            }
            if view.state == ErcState::Read {
                copies.insert(id);
            }
            if view.state == ErcState::Exclusive && !view.copies.is_empty() {
                return fail("an exclusive page has copies");
            }
        }
        let known = owner.map_or(NodeSet::EMPTY, |owner| views[owner.index()].copies);
        if copies != known {
            return fail("the owner is wrong about the copies");
        }
        Ok(())
    }

    fn is_quiet(&self) -> bool {
        Self::is_quiet(self)
    }

    fn is_holding(&self) -> bool {
        Self::is_holding(self)
    }
}
