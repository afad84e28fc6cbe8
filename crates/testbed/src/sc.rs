//! What must hold of `sc` machines when nothing is under way.

use crate::world::{Machine, Node};
use gondwana_coherence::{Access, Layout, Page, Sc, ScState};
use gondwana_topology::{Id, NodeId, NodeSet};

impl Machine for Sc {
    fn agree(nodes: &[Node<Self>], page: Page, layout: &Layout) -> Result<(), String> {
        let views: Vec<_> = nodes.iter().map(|node| node.machine.page(page)).collect();
        let fail = |what: &str| Err(format!("page {}: {what}: {views:?}", page.0));
        let mut at = layout.manager(page);
        for _ in 0..nodes.len() {
            at = views[at.index()].manager;
        }
        let manager = views[at.index()];
        if manager.manager != at {
            return fail("requests do not reach a manager");
        }
        let mut copies = NodeSet::EMPTY;
        for (node, view) in views.iter().enumerate() {
            let id = NodeId::from_index(node);
            let right = match view.state {
                ScState::None => Access::None,
                ScState::Read | ScState::Owner => Access::Read,
                ScState::Write | ScState::Common => Access::Write,
            };
            if nodes[node].memory.access[page.0 as usize] != right {
                return fail("a protection doesn't fit its state");
            }
            let is_common = view.state == ScState::Common;
            if is_common && manager.state != ScState::Common {
                return fail("only the manager can make a page common");
            }
            let owns = matches!(view.state, ScState::Owner | ScState::Write) || is_common && id == at;
            if owns != (manager.owner == Some(id)) {
                return fail("the manager is wrong about the owner");
            }
            if view.state == ScState::Read {
                copies.insert(id);
            }
            if view.state == ScState::Write && !manager.copies.is_empty() {
                return fail("there are copies of a page that is written");
            }
        }
        if copies != manager.copies {
            return fail("the manager is wrong about the copies");
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
