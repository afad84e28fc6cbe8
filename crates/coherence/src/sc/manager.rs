//! What the manager of a page does: one request at a time.

use super::message::ScMessage;
use super::state::{BUSY, GIVE, Managed, NOBODY, Request, ScState};
use super::{MOST_SERVED, Sc};
use crate::runs::{leading, span};
use crate::{Env, Event, Page, Violation};
use gondwana_topology::{NodeId, NodeSet};

impl Sc {
    pub(super) fn copies(&mut self, page: Page) -> NodeSet {
        let entry = *self.pages.entry(page);
        self.pages.known(entry).map_or(NodeSet::EMPTY, |managed| managed.copies)
    }

    /// True if nobody waits for the page here.
    pub(super) fn has_no_requests(&mut self, page: Page) -> bool {
        let entry = *self.pages.entry(page);
        !entry.has(BUSY) && self.pages.known(entry).is_none_or(|managed| managed.queue.is_empty())
    }

    /// Gives back the record of a page that has neither copies nor requests.
    pub(super) fn tidy(&mut self, page: Page) {
        let entry = *self.pages.entry(page);
        let empty = |managed: &Managed| managed.copies.is_empty() && managed.queue.is_empty();
        if self.pages.known(entry).is_some_and(empty) {
            self.pages.give_back(page);
        }
    }

    pub(super) fn enqueue(&mut self, page: Page, request: Request, env: &mut dyn Env) {
        self.line_up(page, request);
        self.hurry(page, env);
        self.serve_next(page, env);
    }

    /// Serves requests for the page until one has to be confirmed or none is left.
    pub(super) fn serve_next(&mut self, page: Page, env: &mut dyn Env) {
        while !self.pages.entry(page).has(BUSY) {
            if self.pages.record(page).queue.is_empty() {
                break;
            }
            let Some(request) = self.first_in_turn(page, env) else {
                self.stall(page);
                return;
            };
            if self.pages.entry(page).owner == NOBODY {
                self.touch_common(page, request.requester, env);
            }
            if self.pages.entry(page).state == ScState::Common {
                self.give_common(page, request, env);
                self.pages.record(page).queue.pop_front();
            } else if !self.takes_for_common(page, request, env) {
                self.serve(page, request, env);
                self.hurry(page, env);
            }
        }
        self.tidy(page);
    }

    /// The requests for a page wait until [`Sc::settle`].
    fn stall(&mut self, page: Page) {
        if let Some(first) = self.pages.record(page).queue.front_mut() {
            first.kept = true;
        }
        self.put_off += 1;
        if !self.stalled.contains(&page) {
            self.stalled.push(page);
        }
    }

    /// True if the request would take from this node what stays here.
    pub(super) fn is_kept_from(&mut self, page: Page, request: Request, env: &dyn Env) -> bool {
        let entry = *self.pages.entry(page);
        let takes = if request.write { entry.state != ScState::None } else { entry.state == ScState::Write };
        let me = self.pages.me();
        takes && request.requester != me && self.holds.end(page, request.turn(), me, env).is_some()
    }

    /// Serves the first request, or begins to: then its pages are busy.
    fn serve(&mut self, first: Page, request: Request, env: &mut dyn Env) {
        let me = self.pages.me();
        let owner = self.pages.entry(first).owner;
        if owner == NOBODY {
            self.give_untouched(first, request, env);
            self.pages.record(first).queue.pop_front();
        } else if !request.write && owner == me {
            self.give_copies(first, request, env);
            self.pages.record(first).queue.pop_front();
        } else {
            let count = self.begin(first, request, env);
            if request.write {
                self.serve_write(first, count, request, env);
            } else {
                self.forward(first, count, request, true, 0, env);
            }
        }
    }

    /// Makes the pages busy that one answer will bring: `first`, and those behind it that are with the same nodes, for which
    /// nobody waits, and that do not stay here. Returns how many those are.
    fn begin(&mut self, first: Page, request: Request, env: &mut dyn Env) -> u32 {
        let me = self.pages.me();
        let owner = self.pages.entry(first).owner;
        let copies = self.copies(first);
        let most = request.asked.min(MOST_SERVED);
        self.pages.entry(first).set(BUSY);
        let more = leading(Page(first.0 + 1), most - 1, |page| {
            let entry = *self.pages.entry(page);
            entry.is_manager(me)
                && entry.owner == owner
                && entry.state != ScState::Common
                && !entry.has(GIVE)
                && self.has_no_requests(page)
                && self.copies(page) == copies
                && !self.is_kept_from(page, request, env)
        });
        for page in span(Page(first.0 + 1), more) {
            self.pages.entry(page).set(BUSY);
            self.pages.record(page).queue.push_back(request);
        }
        let count = 1 + more;
        if request.requester == me {
            for page in span(Page(first.0 + count), request.asked - count) {
                self.resume(page, false, env);
            }
        }
        count
    }

    fn give_untouched(&mut self, first: Page, request: Request, env: &mut dyn Env) {
        let Request { requester, write, asked, .. } = request;
        let manager = self.pages.me();
        let served = self.untouched(first, asked);
        for page in span(first, served) {
            self.pages.entry(page).owner = requester;
        }
        let message = ScMessage::Pages {
            first,
            asked,
            served,
            write: true,
            manager,
            untouched: true,
            acks: 0,
            kept: false,
        };
        env.observe(Event::Served { write }, first, served, requester);
        self.send(requester, &message, env);
    }

    fn give_copies(&mut self, first: Page, request: Request, env: &mut dyn Env) {
        let Request { requester, asked, kept, .. } = request;
        let me = self.pages.me();
        let turn = request.turn();
        let served = 1 + leading(Page(first.0 + 1), asked.min(MOST_SERVED) - 1, |page| {
            let entry = *self.pages.entry(page);
            entry.owner == me
                && entry.state != ScState::Common
                && !entry.has(BUSY)
                && self.holds.end(page, turn, me, env).is_none()
        });
        for page in span(first, served) {
            self.pages.record(page).copies.insert(requester);
        }
        self.share(first, served, requester, env);
        let message = ScMessage::Pages {
            first,
            asked,
            served,
            write: false,
            manager: me,
            untouched: false,
            acks: 0,
            kept,
        };
        env.observe(Event::Served { write: false }, first, served, requester);
        self.send_pages(requester, &message, first, served, env);
    }

    fn serve_write(&mut self, first: Page, count: u32, request: Request, env: &mut dyn Env) {
        let Request { requester, asked, slice, kept, .. } = request;
        let me = self.pages.me();
        let owner = self.pages.entry(first).owner;
        let mut others = self.copies(first);
        let contents = !others.remove(requester) && owner != requester;
        let mut acks = 0;
        for node in others.iter() {
            acks += 1;
            if node == me {
                self.lose(first, count, requester, env);
                self.send(requester, &ScMessage::InvalidateAck { first, count, kept }, env);
            } else {
                env.observe(Event::InvalidationSent, first, count, node);
                self.send(node, &ScMessage::Invalidate { first, count, writer: requester, slice }, env);
            }
        }
        if owner != requester && owner != me {
            self.forward(first, count, request, contents, acks, env);
        } else if requester == me {
            env.observe(Event::Upgraded, first, count, me);
            self.take_ownership(first, count, acks, env);
        } else {
            if owner == me {
                self.lose(first, count, requester, env);
            }
            let message = ScMessage::Pages {
                first,
                asked,
                served: count,
                write: true,
                manager: me,
                untouched: false,
                acks,
                kept,
            };
            env.observe(Event::Served { write: true }, first, count, requester);
            if contents {
                self.send_pages(requester, &message, first, count, env);
            } else {
                self.send(requester, &message, env);
            }
        }
    }

    fn forward(
        &mut self,
        first: Page,
        count: u32,
        request: Request,
        contents: bool,
        acks: u32,
        env: &mut dyn Env,
    ) {
        let Request { requester, write, slice, kept, .. } = request;
        let owner = self.pages.entry(first).owner;
        self.counters.fetches_forwarded += 1;
        // What this node itself does not get, it knows already.
        let asked = if requester == self.pages.me() { count } else { request.asked };
        let message =
            ScMessage::Forward { first, count, asked, write, contents, acks, requester, slice, kept };
        if requester == self.pages.me() {
            env.observe(Event::Asked, first, count, owner);
        }
        self.send(owner, &message, env);
    }

    pub(super) fn take_confirm(
        &mut self,
        from: NodeId,
        first: Page,
        count: u32,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.pages.check(first, count)?;
        for page in span(first, count) {
            let expected = |request: &Request| request.requester == from;
            let entry = *self.pages.entry(page);
            let front = self.pages.known(entry).and_then(|managed| managed.queue.front());
            if !entry.has(BUSY) || !front.is_some_and(expected) {
                return Err(Violation::Unexpected { message: "Confirm", page });
            }
            self.confirm(page, env);
        }
        for page in span(first, count) {
            self.serve_next(page, env);
        }
        Ok(())
    }

    /// Ends the request for a page that is being served.
    pub(super) fn confirm(&mut self, page: Page, env: &mut dyn Env) {
        let managed = self.pages.record(page);
        let Some(request) = managed.queue.pop_front() else { return };
        if request.write {
            managed.copies = NodeSet::EMPTY;
            self.pages.entry(page).owner = request.requester;
        } else {
            managed.copies.insert(request.requester);
        }
        let entry = self.pages.entry(page);
        entry.take(BUSY);
        // Every copy is gone, and nothing is on its way to anybody.
        if request.write && entry.has(GIVE) {
            self.give_with_requests(page, env);
        } else if request.write {
            self.make_common(page, env);
        }
    }
}
