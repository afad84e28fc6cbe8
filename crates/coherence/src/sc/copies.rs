//! Pages coming to this node and going from it.

use super::Sc;
use super::message::ScMessage;
use super::state::{ARRIVED, ASKED, KEPT, ScState};
use crate::runs::{leading, runs, span};
use crate::{Access, Env, Event, Page, Violation};
use gondwana_topology::NodeId;

/// The header of [`ScMessage::Pages`].
pub(super) struct Pages {
    pub first: Page,
    pub asked: u32,
    pub served: u32,
    pub write: bool,
    pub manager: NodeId,
    pub untouched: bool,
    pub acks: u32,
    pub kept: bool,
}

impl Sc {
    pub(super) fn take_pages(
        &mut self,
        from: NodeId,
        pages: &Pages,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Pages";
        let &Pages { first, asked, served, write, manager, untouched, acks, kept } = pages;
        self.pages.check(first, asked)?;
        if served == 0 || served > asked {
            return Err(Violation::Contents { message: NAME });
        }
        let has_copy = self.pages.entry(first).state != ScState::None;
        let alike =
            self.pages.run(first, served, |entry| (entry.state != ScState::None) == has_copy) == served;
        let sized = self.pages.layout().are_contents(bulk, served);
        let fits = if untouched {
            bulk.is_empty() && !has_copy
        } else if write {
            if has_copy { bulk.is_empty() } else { sized }
        } else {
            sized && !has_copy
        };
        if !fits || !alike {
            return Err(Violation::Contents { message: NAME });
        }
        self.check_acks(NAME, first, acks)?;
        if untouched || !bulk.is_empty() {
            env.observe(Event::Arrived { bytes: bulk.len() as u64 }, first, served, from);
        } else {
            env.observe(Event::Answered, first, served, from);
        }
        if let Some(page) = span(first, asked).find(|&page| !self.pages.entry(page).has(ASKED)) {
            return Err(Violation::Unexpected { message: NAME, page });
        }
        for page in span(Page(first.0 + served), asked - served) {
            self.resume(page, false, env);
        }
        for page in span(first, served) {
            self.learn_manager(NAME, page, manager)?;
        }
        if kept {
            self.pages.entry(first).set(KEPT);
        }
        if untouched {
            // Never touched anywhere, so this node's frames are zero as well.
            self.gain(first, served, ScState::Write, env);
            self.counters.first_touches += u64::from(served);
            self.counters.exclusive_entered += u64::from(served);
            return Ok(());
        }
        if !bulk.is_empty() {
            env.install(first, bulk, Access::Read);
            self.counters.page_transfers += u64::from(served);
        }
        if write {
            if has_copy {
                env.observe(Event::Upgraded, first, served, from);
            }
            self.take_ownership(first, served, acks, env);
        } else {
            self.gain(first, served, ScState::Read, env);
            // A manager that sent its own copies knows already.
            if from != manager {
                self.tell_manager(first, served, env);
            }
        }
        self.serve_managed(first, served, env);
        Ok(())
    }

    /// An error if a message promises more acknowledgements than there are nodes beside the writer's.
    fn check_acks(&self, message: &'static str, page: Page, acks: u32) -> Result<(), Violation> {
        if acks >= u32::from(self.pages.layout().nodes()) {
            return Err(Violation::Unexpected { message, page });
        }
        Ok(())
    }

    /// Each of the pages is this node's as soon as `acks` more invalidations of it are acknowledged.
    pub(super) fn take_ownership(&mut self, first: Page, count: u32, acks: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            entry.acks += acks.cast_signed();
            entry.set(ARRIVED);
        }
        self.write_if_acknowledged(first, count, env);
    }

    pub(super) fn take_ack(
        &mut self,
        first: Page,
        count: u32,
        kept: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        self.pages.check(first, count)?;
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            if !entry.has(ASKED) {
                return Err(Violation::Unexpected { message: "InvalidateAck", page });
            }
            entry.acks -= 1;
            if kept {
                entry.set(KEPT);
            }
        }
        self.write_if_acknowledged(first, count, env);
        self.serve_managed(first, count, env);
        Ok(())
    }

    fn write_if_acknowledged(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let end = first.0 + count;
        let mut next = first;
        while next.0 < end {
            let manager = self.manager(next);
            let complete = leading(next, end - next.0, |page| {
                let entry = *self.pages.entry(page);
                entry.acks == 0 && entry.has(ARRIVED) && self.manager(page) == manager
            });
            if complete > 0 {
                for page in span(next, complete) {
                    self.pages.entry(page).take(ARRIVED);
                }
                self.counters.home_moves += u64::from(complete);
                self.counters.exclusive_entered += u64::from(complete);
                self.gain(next, complete, ScState::Write, env);
                self.tell_manager(next, complete, env);
            }
            next.0 += complete.max(1);
        }
    }

    /// The request for the pages, which have one manager, is complete.
    fn tell_manager(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let manager = self.manager(first);
        if manager == self.pages.me() {
            for page in span(first, count) {
                self.confirm(page, env);
            }
        } else {
            self.send(manager, &ScMessage::Confirm { first, count }, env);
        }
    }

    /// Serves what waits for those of the pages that this node manages.
    fn serve_managed(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            if self.manager(page) == self.pages.me() {
                self.serve_next(page, env);
            }
        }
    }

    /// Lets threads use pages that came, and resumes those that waited.
    fn gain(&mut self, first: Page, count: u32, state: ScState, env: &mut dyn Env) {
        let access = if state == ScState::Write { Access::Write } else { Access::Read };
        env.protect(first, count, access);
        let mut awaited = false;
        for page in span(first, count) {
            self.pages.entry(page).state = state;
            awaited |= self.resume(page, true, env);
        }
        self.holds.came_along(first, count, awaited, env.now());
    }

    /// Ends this node's use of pages, before they are sent away to be written by `writer`, or written there.
    pub(super) fn lose(&mut self, first: Page, count: u32, writer: NodeId, env: &mut dyn Env) {
        env.protect(first, count, Access::None);
        let now = env.now();
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            self.holds.lost(page, entry.state != ScState::Read, now);
            let incident = match std::mem::replace(&mut entry.state, ScState::None) {
                ScState::Write => {
                    self.counters.exclusive_left += 1;
                    self.outgoing.iter_mut().for_each(|outgoing| outgoing.written = true);
                    Event::Left { exclusive: true, written: true }
                }
                _ => Event::Invalidated,
            };
            env.observe(incident, page, 1, writer);
        }
        self.counters.invalidations += u64::from(count);
    }

    /// Ends this node's writing of those of its pages that it can write, before `reader` gets copies.
    pub(super) fn share(&mut self, first: Page, count: u32, reader: NodeId, env: &mut dyn Env) {
        let now = env.now();
        let mut written = std::mem::take(&mut self.scratch);
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            if entry.state == ScState::Write {
                entry.state = ScState::Owner;
                self.holds.lost(page, true, now);
                written.push(page);
            }
        }
        for (first, count) in runs(&written) {
            env.protect(first, count, Access::Read);
            env.observe(Event::Shared, first, count, reader);
        }
        self.counters.exclusive_left += written.len() as u64;
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.written |= !written.is_empty();
        }
        written.clear();
        self.scratch = written;
    }

    /// Handles a manager's `Forward` or `Invalidate`, or puts off what concerns pages that stay. `again`: after it was put off.
    pub(super) fn give_up(
        &mut self,
        from: NodeId,
        mut message: ScMessage,
        again: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let Some((first, count, turn)) = message.taken() else { return Ok(()) };
        let (me, to) = (self.pages.me(), turn.node);
        let name = if matches!(message, ScMessage::Forward { .. }) { "Forward" } else { "Invalidate" };
        self.pages.check(first, count)?;
        self.pages.check_node(name, to)?;
        for page in span(first, count) {
            let state = self.pages.entry(page).state;
            let is_owner = matches!(state, ScState::Owner | ScState::Write);
            let fits = if name == "Forward" { is_owner } else { state == ScState::Read };
            if !fits {
                return Err(Violation::Unexpected { message: name, page });
            }
            self.learn_manager(name, page, from)?;
        }
        // Passed on unchecked, wrong numbers would seem to be this node's.
        if let ScMessage::Forward { acks, asked, .. } = message {
            self.check_acks(name, first, acks)?;
            self.pages.check(first, asked)?;
            if asked < count {
                return Err(Violation::Unexpected { message: name, page: first });
            }
        }
        self.holds.saw(turn.slice);
        let free = leading(first, count, |page| self.holds.end(page, turn, me, env).is_none());
        if free == 0 {
            self.put_off += 1;
            self.parked.push((from, message));
            return Ok(());
        }
        if free < count {
            let (now, later) = message.split(free);
            self.put_off += 1;
            self.parked.push((from, later));
            message = now;
        }
        self.comply(from, &message, again, env);
        Ok(())
    }

    /// Does what a manager's `Forward` or `Invalidate` asks for. `again`: after it was put off.
    pub(super) fn comply(&mut self, from: NodeId, message: &ScMessage, again: bool, env: &mut dyn Env) {
        let Some((first, free, turn)) = message.taken() else { return };
        let &ScMessage::Forward { asked, write, contents, acks, requester, kept, .. } = message else {
            self.lose(first, free, turn.node, env);
            self.send(turn.node, &ScMessage::InvalidateAck { first, count: free, kept: again }, env);
            return;
        };
        if write {
            self.lose(first, free, requester, env);
        } else {
            self.share(first, free, requester, env);
        }
        let answer = ScMessage::Pages {
            first,
            asked,
            served: free,
            write,
            manager: from,
            untouched: false,
            acks,
            kept: kept || again,
        };
        env.observe(Event::Served { write }, first, free, requester);
        if contents {
            self.send_pages(requester, &answer, first, free, env);
        } else {
            self.send(requester, &answer, env);
        }
    }
}
