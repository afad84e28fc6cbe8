//! Common pages: pages that all nodes use in one place, which the hardware keeps coherent.
//!
//! A page moves to the node that uses it, which is right for as long as that node uses it by itself. A page that nodes take from each
//! other again and again, such as one with a lock or a queue, is better left in one place, for all to reach it there: the choice between
//! a local copy and remote accesses that *reactive NUMA* makes by counting refetches (Falsafi and Wood, *Reactive NUMA*, ISCA 1997;
//! WildFire has both kinds of pages). So the manager counts for each page how often writers take it from others; not the first time, when it
//! comes from the node that has initialised it to the one that uses it. When it has counted
//! [`StartOptions::common_after`](crate::StartOptions::common_after), it takes the page itself, moves it to the common memory, and answers
//! each later request with leave to use it there. A common page stays common.
//!
//! With [`CommonAfter::Touch`], a page is common as soon as a node touches it, with the untouched pages around it, of which the manager
//! tells all others. There is nothing to move.
//!
//! Where a policy has decided who manages a page of this node, no more of its pages become common.

use super::Sc;
use super::message::ScMessage;
use super::state::{ASKED, CONTESTED, GIVE, NOBODY, PINNED, Request, ScState};
use crate::registry::TOUCHED_TOGETHER;
use crate::runs::{leading, span};
use crate::{CommonAfter, Env, Event, Page, Violation};
use gondwana_topology::NodeId;

impl Sc {
    /// Makes pages common that nobody has touched, around one that `toucher` is about to touch. Returns how many there are from that one on,
    /// or `None` if it is left as it is.
    pub(super) fn touch_common(&mut self, page: Page, toucher: NodeId, env: &mut dyn Env) -> Option<u32> {
        let entry = *self.pages.entry(page);
        let touches = self.common_after == Some(CommonAfter::Touch)
            && !entry.has(PINNED | GIVE)
            && env.can_be_common(page);
        if !touches {
            return None;
        }
        let me = self.pages.me();
        let (first, count) = self.pages.around(page, TOUCHED_TOGETHER, |entry| {
            entry.owner == NOBODY && entry.manager == me && !entry.has(PINNED | GIVE)
        });
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            (entry.owner, entry.state) = (me, ScState::Common);
        }
        self.counters.became_common += u64::from(count);
        let goes_on = page == first && toucher == me;
        env.touch_common(first, count, if goes_on { first.before() } else { None });
        for node in self.pages.layout().others().iter() {
            self.send(node, &ScMessage::Touched { first, count }, env);
        }
        Some(first.0 + count - page.0)
    }

    /// The manager has made pages common that nobody had touched. What this node has asked for, its answer brings.
    pub(super) fn take_touched(
        &mut self,
        manager: NodeId,
        first: Page,
        count: u32,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Touched";
        self.pages.check(first, count)?;
        for page in span(first, count) {
            if self.pages.entry(page).state != ScState::None {
                return Err(Violation::Unexpected { message: NAME, page });
            }
            self.learn_manager(NAME, page, manager)?;
        }
        let from = if self.pages.entry(first).has(ASKED) { first.before() } else { None };
        let end = first.0 + count;
        let mut next = first;
        while next.0 < end {
            let free = self.pages.run(next, end - next.0, |entry| !entry.has(ASKED));
            if free > 0 {
                env.touch_common(next, free, from);
                self.counters.became_common += u64::from(free);
                span(next, free).for_each(|page| self.pages.entry(page).state = ScState::Common);
            }
            next.0 += free + 1;
        }
        Ok(())
    }

    /// Counts a request that is about to be served. True if something else is to be done first, which has begun: this node, the
    /// manager, takes the page, or has moved it.
    pub(super) fn takes_for_common(&mut self, page: Page, request: Request, env: &mut dyn Env) -> bool {
        let Some(after) = self.common_after.filter(|_| request.write) else { return false };
        let copies = self.copies(page);
        let entry = self.pages.entry(page);
        let takes = entry.owner != request.requester || copies.iter().any(|node| node != request.requester);
        if entry.owner == NOBODY || entry.has(GIVE | PINNED | CONTESTED) || !takes {
            return false;
        }
        entry.taken = entry.taken.saturating_add(1);
        if entry.taken <= after.times().get() || !env.can_be_common(page) {
            return false;
        }
        entry.set(CONTESTED);
        if self.make_common(page, env) {
            return true;
        }
        if request.requester != self.pages.me() && !self.take_first(page, env) {
            self.pages.entry(page).take(CONTESTED);
            return false;
        }
        request.requester != self.pages.me()
    }

    /// Has a request of this node, to write the page, served first. False if this node has asked for the page together with others.
    fn take_first(&mut self, page: Page, env: &mut dyn Env) -> bool {
        let me = self.pages.me();
        let asked = self.pages.entry(page).has(ASKED);
        let queue = &mut self.pages.record(page).queue;
        let own = queue.iter().position(|request| request.requester == me).and_then(|at| queue.remove(at));
        if own.is_none() && asked {
            return false;
        }
        let slice = self.holds.slice_number(env.now());
        let own = own.unwrap_or(Request { requester: me, slice, write: true, asked: 1, kept: false });
        self.pages.record(page).queue.push_front(Request { write: true, ..own });
        self.pages.entry(page).set(ASKED);
        true
    }

    /// Moves a contested page, if this node alone has it. True if it has.
    pub(super) fn make_common(&mut self, page: Page, env: &mut dyn Env) -> bool {
        let entry = self.pages.entry(page);
        if !entry.has(CONTESTED) || entry.state != ScState::Write {
            return false;
        }
        entry.take(CONTESTED);
        entry.state = ScState::Common;
        env.make_common(page, 1);
        self.counters.became_common += 1;
        self.counters.exclusive_left += 1;
        env.observe(Event::Shared, page, 1, self.pages.me());
        true
    }

    /// Answers a request for a common page.
    pub(super) fn give_common(&mut self, first: Page, request: Request, env: &mut dyn Env) {
        let Request { requester, asked, write, .. } = request;
        let me = self.pages.me();
        let served = 1 + leading(Page(first.0 + 1), asked - 1, |page| {
            let entry = self.pages.entry(page);
            entry.is_manager(me) && entry.state == ScState::Common
        });
        if requester == me {
            for page in span(first, asked) {
                self.resume(page, false, env);
            }
            return;
        }
        env.observe(Event::Served { write }, first, served, requester);
        self.send(requester, &ScMessage::Common { first, asked, served, manager: me }, env);
    }

    /// Pages that this node has asked for are common: `served` of those `asked` for.
    pub(super) fn take_common(
        &mut self,
        from: NodeId,
        first: Page,
        (asked, served): (u32, u32),
        manager: NodeId,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Common";
        self.pages.check(first, asked)?;
        if served == 0 || served > asked {
            return Err(Violation::Contents { message: NAME });
        }
        for page in span(first, asked) {
            let entry = *self.pages.entry(page);
            let is_served = page.0 - first.0 < served;
            if !entry.has(ASKED) || is_served && entry.state != ScState::None {
                return Err(Violation::Unexpected { message: NAME, page });
            }
            if is_served {
                self.learn_manager(NAME, page, manager)?;
            }
        }
        env.observe(Event::Arrived { bytes: 0 }, first, served, from);
        env.map_common(first, served);
        self.counters.became_common += u64::from(served);
        for page in span(first, asked) {
            if page.0 - first.0 < served {
                self.pages.entry(page).state = ScState::Common;
            }
            self.resume(page, false, env);
        }
        Ok(())
    }
}
