//! What must hold of `csm` machines when nothing is under way.

use crate::world::{Machine, Node};
use gondwana_coherence::{Access, Claims, Csm, Layout, Page, PageView, State};
use gondwana_topology::{Id, NodeId};

impl Machine for Csm {
    fn agree(nodes: &[Node<Self>], page: Page, _layout: &Layout) -> Result<(), String> {
        let views: Vec<_> = nodes.iter().map(|node| as_it_will_be(node, page)).collect();
        let fail = |what: &str| Err(format!("page {}: {what}: {views:?}", page.0));
        let homes: Vec<usize> = (0..nodes.len()).filter(|&node| views[node].state.is_home()).collect();
        let [home] = homes[..] else { return fail("there must be one home") };
        if views[home].state == State::HomeExclusive && !views[home].sharers.is_empty() {
            return fail("an exclusive page has sharers");
        }
        let is_common = views.iter().any(|view| view.state == State::Common);
        if is_common && views[home].state != State::HomeCommon {
            return fail("only the home can make a page common");
        }
        let sharers = views[home].sharers;
        for (node, view) in views.iter().enumerate() {
            let access = nodes[node].memory.access[page.0 as usize];
            let right = match view.state {
                State::Untouched | State::Invalid | State::StaleDirty => Access::None,
                State::HomeExclusive | State::HomeDirty | State::Dirty => Access::Write,
                State::Common | State::HomeCommon => Access::Write,
                State::HomeShared | State::Shared => Access::Read,
                State::Fetching | State::Deferred => return fail("a fetch never ended"),
                State::HomeLeaving | State::Gone => return fail("a page has left"),
            };
            if access != right {
                return fail("a protection doesn't fit its state");
            }
            let may_have_twin = matches!(view.state, State::Dirty | State::StaleDirty | State::HomeDirty);
            let must_have_twin = may_have_twin && view.state != State::HomeDirty;
            if view.twin != nodes[node].memory.has_twin(page)
                || view.twin && !may_have_twin
                || must_have_twin && !view.twin
            {
                return fail("a twin doesn't fit its state");
            }
            let copy = matches!(view.state, State::Shared | State::Dirty);
            if copy && !view.notice_pending && !sharers.contains(NodeId::from_index(node)) {
                return fail("the home doesn't know a sharer");
            }
            let mut at = node;
            for _ in 0..nodes.len() {
                if at != home {
                    at = views[at].probable_home.index();
                }
            }
            if at != home {
                return fail("probable homes don't lead home");
            }
        }
        Ok(())
    }

    fn is_quiet(&self) -> bool {
        Self::is_quiet(self)
    }
}

/// What a node knows about a page, and would know if it now withdrew the page and looked for notices.
fn as_it_will_be(node: &Node<Csm>, page: Page) -> PageView {
    let mut view = node.machine.page(page);
    view.notice_pending |= node.memory.has_posted_notice(page);
    let Claims { readers, home, beside_writers } = node.memory.claims(page);
    if let Some(home) = home {
        assert!(matches!(view.state, State::HomeExclusive | State::HomeShared), "a page in use was taken");
        assert!(view.sharers.is_empty() && readers.is_empty(), "a page in use was taken");
        return PageView { state: State::Shared, probable_home: home, ..view };
    }
    if view.state == State::HomeExclusive && !readers.is_empty() {
        assert!(view.sharers.is_empty(), "an exclusive page has sharers");
        view.state = if beside_writers { State::HomeDirty } else { State::HomeShared };
    }
    view.sharers = view.sharers.union(&readers);
    view
}
