//! How an ordinary page becomes a synchronisation page.
//!
//! Its manager asks all nodes to leave it. Each keeps its threads from the page, waits for what is under way about it, releases all that it has
//! written if the page is among that, and gives up its copy. When all have, the contents are at the home alone, which becomes the
//! owner, and the manager tells all nodes. So nobody has an older copy, no diff of the page is under way, and whatever a thread wrote before a
//! plain store to the page can be acquired with it; what the home's threads wrote is released when the page leaves their node.
//!
//! A home that a policy has just given away may reach a node that has left already: that node says then that it has it.
//!
//! There is one promotion of a page in a run. Nodes that ask meanwhile, or later, hear of that.

use super::{C11, C11Message, Kept, PageKind};
use crate::csm::Leaving;
use crate::runs::span;
use crate::{Csm, CsmMessage, Env, Outcome, Page, Protocol, SyncPoint, Violation};
use gondwana_topology::{NodeId, NodeSet};

/// A page that is leaving all nodes, at its manager.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Promotion {
    page: Page,
    /// The nodes that have not left it.
    missing: NodeSet,
    home: Option<NodeId>,
}

/// A page is worn out when it was released so much more often because of synchronisation pages than by calls.
const WORN: u8 = 4;

impl C11 {
    /// The node is about to release what it has written, because a synchronisation page leaves it or for a call. Returns the pages that are
    /// better synchronisation pages themselves: where threads synchronise all the time, writing a page costs a fault and a diff each time,
    /// and nothing if it stays until others want it.
    pub(super) fn note_released(&mut self, leaves: bool) -> Vec<Page> {
        let mut worn = vec![];
        for page in self.csm.dirty() {
            let released = self.released.entry(page, |_| 0);
            if !leaves {
                *released = released.saturating_sub(1);
            } else if *released < WORN {
                *released += 1;
                if *released == WORN {
                    worn.push(page);
                }
            }
        }
        worn.retain(|&page| self.kind(page) == PageKind::Ordinary);
        worn
    }

    pub(super) fn ask_for_promotion(&mut self, page: Page, env: &mut dyn Env) {
        let manager = self.layout.manager(page);
        if manager == self.layout.me() {
            self.begin_promotion(page, env);
        } else {
            self.send(manager, &C11Message::Promote { page }, env);
        }
    }

    pub(super) fn take_promote(&mut self, page: Page, env: &mut dyn Env) -> Result<(), Violation> {
        self.check_page("Promote", page, self.layout.me())?;
        if self.kind(page) == PageKind::Ordinary {
            self.begin_promotion(page, env);
        }
        Ok(())
    }

    /// Asks all nodes to leave the page.
    fn begin_promotion(&mut self, page: Page, env: &mut dyn Env) {
        let others = self.layout.others();
        let me = self.layout.me();
        self.promotions.push(Promotion { page, missing: others.union(&NodeSet::only(me)), home: None });
        for node in others.iter() {
            self.send(node, &C11Message::Quit { page }, env);
        }
        self.quit(page, env);
    }

    pub(super) fn take_quit(&mut self, from: NodeId, page: Page, env: &mut dyn Env) -> Result<(), Violation> {
        self.check_page("Quit", page, from)?;
        if self.kind(page) != PageKind::Ordinary {
            return Err(Violation::Unexpected { message: "Quit", page });
        }
        self.quit(page, env);
        Ok(())
    }

    /// Begins to leave a page.
    fn quit(&mut self, page: Page, env: &mut dyn Env) {
        self.set_kind(page, PageKind::Leaving);
        self.leaving.push((page, 0));
        self.proceed(env);
    }

    /// A policy makes this node home of pages. It may be done already with some that are leaving all nodes.
    pub(super) fn take_placed(
        &mut self,
        from: NodeId,
        first: Page,
        count: u32,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.csm.handle(from, CsmMessage::Placed { first, count }, bulk, env)?;
        for page in span(first, count) {
            if self.kind(page) == PageKind::Leaving && !self.is_leaving(page) {
                self.leaving.push((page, 0));
            }
        }
        self.proceed(env);
        Ok(())
    }

    /// True of a page that is leaving all nodes, with which this one is not done.
    fn is_leaving(&self, page: Page) -> bool {
        self.leaving.iter().any(|one| one.0 == page)
    }

    /// Goes on with the pages that this node is leaving.
    pub(super) fn go_on_leaving(&mut self, env: &mut dyn Env) {
        if self.leaving.is_empty() {
            return;
        }
        let mut leaving = std::mem::take(&mut self.leaving);
        let under_way = |csm: &mut Csm, page, env: &mut dyn Env| csm.leave(page, env) == Leaving::UnderWay;
        let came = leaving.iter().filter(|one| under_way(&mut self.csm, one.0, env)).count();
        // Threads are kept from the pages first, so that what they wrote before they wrote these is released with them.
        let flush = if came > 0 { self.csm.begin_release(SyncPoint::default(), env) } else { None };
        let completed = self.csm.completed();
        let mut left = Vec::new();
        leaving.retain_mut(|(page, released)| {
            *released = flush.unwrap_or(0).max(*released);
            let leaving = self.csm.leave(*page, env);
            let has_left = leaving != Leaving::UnderWay && *released <= completed;
            if has_left {
                left.push((*page, leaving == Leaving::Home));
            }
            !has_left
        });
        self.leaving = leaving;
        for (page, home) in left {
            let (me, manager) = (self.layout.me(), self.layout.manager(page));
            if manager == me {
                self.note_left(me, page, home, env);
            } else {
                self.send(manager, &C11Message::Left { page, home }, env);
            }
        }
    }

    pub(super) fn take_left(
        &mut self,
        from: NodeId,
        page: Page,
        home: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.check_page("Left", page, self.layout.me())?;
        let expected = |promotion: &Promotion| {
            let is_news = promotion.missing.contains(from) || home;
            promotion.page == page && is_news && !(home && promotion.home.is_some())
        };
        if !self.promotions.iter().any(expected) {
            return Err(Violation::Unexpected { message: "Left", page });
        }
        self.note_left(from, page, home, env);
        Ok(())
    }

    fn note_left(&mut self, node: NodeId, page: Page, home: bool, env: &mut dyn Env) {
        let Some(index) = self.promotions.iter().position(|promotion| promotion.page == page) else { return };
        let promotion = &mut self.promotions[index];
        promotion.missing.remove(node);
        if home {
            promotion.home = Some(node);
        }
        // A home that is on its way to a node that has left says so when it is there.
        let Some(owner) = promotion.home.filter(|_| promotion.missing.is_empty()) else { return };
        self.promotions.swap_remove(index);
        for node in self.layout.others().iter() {
            self.send(node, &C11Message::Promoted { page, owner }, env);
        }
        self.take_over(page, owner, env);
    }

    pub(super) fn take_promoted(
        &mut self,
        from: NodeId,
        page: Page,
        owner: NodeId,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.check_page("Promoted", page, from)?;
        let has_left = self.kind(page) == PageKind::Leaving && !self.is_leaving(page);
        if !has_left || owner.0 >= self.layout.nodes() {
            return Err(Violation::Unexpected { message: "Promoted", page });
        }
        self.take_over(page, owner, env);
        Ok(())
    }

    /// The page is a synchronisation page from now on. Threads that waited for that go on.
    fn take_over(&mut self, page: Page, owner: NodeId, env: &mut dyn Env) {
        self.csm.gone(page, env);
        self.set_kind(page, PageKind::Synchronisation);
        self.promoted += 1;
        if owner == self.layout.me() {
            // Its contents are what others have released.
            self.csm.acquire(SyncPoint::default(), env);
        }
        self.with_sc(env, |sc, env| sc.take_over(page, owner, env));
        let kept = std::mem::take(&mut self.kept);
        for one in kept {
            let Kept { page: awaited, waiter, access } = one;
            if awaited != page {
                self.kept.push(one);
                continue;
            }
            let outcome = access.map_or(Outcome::Done, |access| self.fault(page, access, 0, waiter, env));
            if outcome == Outcome::Done {
                env.resume(waiter);
            }
        }
    }

    /// An error unless the page exists and `manager` manages it.
    fn check_page(&self, message: &'static str, page: Page, manager: NodeId) -> Result<(), Violation> {
        if !self.layout.holds(page, 1) {
            return Err(Violation::OutsideSpan { first: page, count: 1 });
        }
        if self.layout.manager(page) != manager {
            return Err(Violation::Unexpected { message, page });
        }
        Ok(())
    }
}
