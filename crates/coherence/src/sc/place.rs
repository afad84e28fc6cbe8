//! Managers that a policy decides: what a *home* is to this protocol is the node that orders the requests for a page.
//!
//! The node that manages a page by its address notes which other node is to do it (`GIVE`), and goes on until it can
//! hand over what it knows: while nobody has touched the page, while the page is on this node alone, or when a writer has
//! confirmed that it has the only copy. At other times something can be on its way to a node with a copy, and must not
//! be overtaken by what the next manager sends; so the manager asks for the page itself, as a writer. A node that asks a former
//! manager is passed on.

use super::Sc;
use super::message::ScMessage;
use super::state::{ASKED, CONTESTED, GIVE, NOBODY, PINNED, Request, ScState};
use crate::runs::{count_of, leading, runs, span};
use crate::{Env, Event, Page, Violation};
use gondwana_topology::NodeId;

impl Sc {
    /// The node to ask for a page.
    pub(super) fn manager(&mut self, page: Page) -> NodeId {
        let me = self.pages.me();
        let entry = self.pages.entry(page);
        if entry.is_manager(me) { me } else { entry.manager }
    }

    /// Another node, or this one, has just shown who manages the page.
    pub(super) fn learn_manager(
        &mut self,
        message: &'static str,
        page: Page,
        manager: NodeId,
    ) -> Result<(), Violation> {
        if manager.0 >= self.pages.layout().nodes() {
            return Err(Violation::Node { message, node: manager.0 });
        }
        let me = self.pages.me();
        let entry = self.pages.entry(page);
        if entry.is_manager(me) != (manager == me) {
            return Err(Violation::Unexpected { message, page });
        }
        if manager != me {
            entry.manager = manager;
        }
        Ok(())
    }

    pub(super) fn place_pages(&mut self, first: Page, count: u32, home: Option<NodeId>, env: &mut dyn Env) {
        let me = self.pages.me();
        if home.is_some() {
            // What is freed and allocated again could not go where a policy wants it.
            self.common_after = None;
        }
        let mut given = Vec::new();
        let mut recalled = Vec::new();
        let mut elsewhere: Vec<(NodeId, Page)> = Vec::new();
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            if !entry.is_manager(me) {
                elsewhere.push((entry.manager, page));
                continue;
            }
            if entry.state == ScState::Common {
                continue;
            }
            entry.take(GIVE);
            entry.take(PINNED);
            entry.manager = home.unwrap_or(me);
            if home.is_some() {
                entry.set(PINNED);
            }
            if entry.manager != me {
                entry.set(GIVE);
                // What nobody has touched is left until somebody does.
                let (owner, asked) = (entry.owner, entry.has(ASKED));
                if owner != NOBODY && self.can_give(page) {
                    given.push(page);
                } else if owner != NOBODY && !asked {
                    recalled.push(page);
                }
            }
        }
        for (first, count) in runs(&given) {
            self.give(first, count, env);
        }
        for page in recalled {
            self.ask(page, 1, true, env);
        }
        for list in elsewhere.chunk_by(|(a, p), (b, q)| a == b && p.0 + 1 == q.0) {
            let (to, first) = list[0];
            let message = ScMessage::Place { first, count: count_of(list), home };
            self.send(to, &message, env);
        }
    }

    /// True if the next manager can take over a page now.
    fn can_give(&mut self, page: Page) -> bool {
        let (me, entry) = (self.pages.me(), *self.pages.entry(page));
        let quiet = entry.owner == NOBODY || entry.owner == me && self.copies(page).is_empty();
        entry.has(GIVE) && quiet && self.has_no_requests(page)
    }

    /// Hands pages over, all of which have the same owner and next manager.
    pub(super) fn give(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let like = *self.pages.entry(first);
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.take(GIVE);
            entry.take(PINNED);
            entry.take(CONTESTED);
            entry.owner = NOBODY;
            self.tidy(page);
        }
        let owner = (like.owner != NOBODY).then_some(like.owner);
        self.send(like.manager, &ScMessage::Manage { first, count, owner }, env);
    }

    /// Hands a page over of which one node has the only copy, and which others may wait for: they are passed on.
    pub(super) fn give_with_requests(&mut self, page: Page, env: &mut dyn Env) {
        let waiting = std::mem::take(&mut self.pages.record(page).queue);
        self.give(page, 1, env);
        let (me, manager) = (self.pages.me(), self.pages.entry(page).manager);
        for Request { requester, slice, write, asked: count, .. } in waiting {
            if requester == me {
                env.observe(Event::Asked, page, count, manager);
            }
            self.send(manager, &ScMessage::Request { first: page, count, write, requester, slice }, env);
        }
    }

    /// Somebody wants pages that another node is to manage: hands them over if that is possible now.
    pub(super) fn give_first(&mut self, first: Page, most: u32, env: &mut dyn Env) {
        if !self.pages.entry(first).has(GIVE) || !self.can_give(first) {
            return;
        }
        let like = *self.pages.entry(first);
        let alike = self.pages.run(first, most, |entry| {
            entry.manager == like.manager && entry.owner == like.owner && entry.has(GIVE)
        });
        let count = leading(first, alike, |page| self.can_give(page));
        self.give(first, count, env);
    }

    pub(super) fn take_request(
        &mut self,
        from: NodeId,
        first: Page,
        request: Request,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Request";
        let Request { requester, write, asked: count, slice, .. } = request;
        self.pages.check(first, count)?;
        if requester.0 >= self.pages.layout().nodes() {
            return Err(Violation::Node { message: NAME, node: requester.0 });
        }
        if requester == self.pages.me() {
            // This node has become the manager while it asked: its threads fault again, without a message.
            env.observe(Event::Answered, first, count, from);
            for page in span(first, count) {
                self.resume(page, false, env);
            }
            return Ok(());
        }
        self.holds.saw(slice);
        self.give_first(first, count, env);
        let manager = self.manager(first);
        if manager == self.pages.me() {
            self.enqueue(first, request, env);
        } else {
            self.counters.fetches_forwarded += 1;
            self.send(manager, &ScMessage::Request { first, count, write, requester, slice }, env);
        }
        Ok(())
    }

    /// Another node is to manage these pages; a former manager passes the message on.
    pub(super) fn take_place(
        &mut self,
        first: Page,
        count: u32,
        home: Option<NodeId>,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.pages.check(first, count)?;
        if let Some(home) = home.filter(|home| home.0 >= self.pages.layout().nodes()) {
            return Err(Violation::Node { message: "Place", node: home.0 });
        }
        self.place_pages(first, count, home, env);
        Ok(())
    }

    /// This node manages the pages from now on.
    pub(super) fn take_manage(
        &mut self,
        first: Page,
        count: u32,
        owner: Option<NodeId>,
    ) -> Result<(), Violation> {
        const NAME: &str = "Manage";
        self.pages.check(first, count)?;
        let me = self.pages.me();
        let owner = owner.unwrap_or(NOBODY);
        if owner != NOBODY && owner.0 >= self.pages.layout().nodes() {
            return Err(Violation::Node { message: NAME, node: owner.0 });
        }
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            if entry.is_manager(me) {
                return Err(Violation::Unexpected { message: NAME, page });
            }
            entry.manager = me;
            entry.owner = owner;
            entry.set(PINNED);
        }
        Ok(())
    }
}
