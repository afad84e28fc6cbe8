//! Pages coming to this node and going from it.

use super::Sc;
use super::message::ScMessage;
use super::state::{ARRIVED, ASKED, KEPT, ScState};
use crate::runs::span;
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
        let has_copy = self.pages.entry(first).state != ScState::None;
        let sized = self.pages.layout().are_contents(bulk, served);
        let fits = if untouched {
            bulk.is_empty() && !has_copy
        } else if write {
            served == 1 && if has_copy { bulk.is_empty() } else { sized }
        } else {
            sized && !has_copy
        };
        if !fits || served == 0 || served > asked {
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
                env.observe(Event::Upgraded, first, 1, from);
            }
            self.take_ownership(first, acks, env);
        } else {
            self.gain(first, served, ScState::Read, env);
            // A manager that sent its own copies knows already.
            if from != manager {
                self.tell_manager(first, env);
            }
        }
        self.serve_if_managed(first, env);
        Ok(())
    }

    /// An error if a message promises more acknowledgements than there are nodes beside the writer's.
    fn check_acks(&self, message: &'static str, page: Page, acks: u32) -> Result<(), Violation> {
        if acks >= u32::from(self.pages.layout().nodes()) {
            return Err(Violation::Unexpected { message, page });
        }
        Ok(())
    }

    /// The page is this node's as soon as `acks` more invalidations are acknowledged.
    pub(super) fn take_ownership(&mut self, page: Page, acks: u32, env: &mut dyn Env) {
        let entry = self.pages.entry(page);
        entry.acks += acks.cast_signed();
        entry.set(ARRIVED);
        self.write_if_acknowledged(page, env);
    }

    pub(super) fn take_ack(&mut self, page: Page, kept: bool, env: &mut dyn Env) -> Result<(), Violation> {
        self.pages.check(page, 1)?;
        let entry = self.pages.entry(page);
        if !entry.has(ASKED) {
            return Err(Violation::Unexpected { message: "InvalidateAck", page });
        }
        entry.acks -= 1;
        if kept {
            entry.set(KEPT);
        }
        self.write_if_acknowledged(page, env);
        self.serve_if_managed(page, env);
        Ok(())
    }

    fn write_if_acknowledged(&mut self, page: Page, env: &mut dyn Env) {
        let entry = self.pages.entry(page);
        if entry.acks == 0 && entry.take(ARRIVED) {
            self.counters.home_moves += 1;
            self.counters.exclusive_entered += 1;
            self.gain(page, 1, ScState::Write, env);
            self.tell_manager(page, env);
        }
    }

    /// The request for the page is complete.
    fn tell_manager(&mut self, page: Page, env: &mut dyn Env) {
        let manager = self.manager(page);
        if manager == self.pages.me() {
            self.confirm(page, env);
        } else {
            self.send(manager, &ScMessage::Confirm { page }, &[], env);
        }
    }

    fn serve_if_managed(&mut self, page: Page, env: &mut dyn Env) {
        if self.manager(page) == self.pages.me() {
            self.serve_next(page, env);
        }
    }

    /// Lets threads use pages that came, and resumes those that waited.
    fn gain(&mut self, first: Page, count: u32, state: ScState, env: &mut dyn Env) {
        let access = if state == ScState::Write { Access::Write } else { Access::Read };
        env.protect(first, count, access);
        for page in span(first, count) {
            self.pages.entry(page).state = state;
            self.resume(page, true, env);
        }
    }

    /// Ends this node's use of a page, before it is sent away to be written by `writer`, or written there.
    pub(super) fn lose(&mut self, page: Page, writer: NodeId, env: &mut dyn Env) {
        env.protect(page, 1, Access::None);
        let entry = self.pages.entry(page);
        self.holds.lost(page, entry.state != ScState::Read, env.now());
        let incident = match std::mem::replace(&mut entry.state, ScState::None) {
            ScState::Write => {
                self.counters.exclusive_left += 1;
                Event::Left { exclusive: true, written: true }
            }
            _ => Event::Invalidated,
        };
        env.observe(incident, page, 1, writer);
        self.counters.invalidations += 1;
    }

    /// Handles a manager's `Forward` or `Invalidate`, or puts it off while the page stays. `again`: after it was put off.
    pub(super) fn give_up(
        &mut self,
        from: NodeId,
        message: ScMessage,
        again: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let Some((page, turn)) = message.taken() else { return Ok(()) };
        let to = turn.node;
        let name = if matches!(message, ScMessage::Forward { .. }) { "Forward" } else { "Invalidate" };
        self.pages.check(page, 1)?;
        self.pages.check_node(name, to)?;
        let entry = *self.pages.entry(page);
        let is_owner = matches!(entry.state, ScState::Owner | ScState::Write);
        let fits = if name == "Forward" { is_owner } else { entry.state == ScState::Read };
        if !fits {
            return Err(Violation::Unexpected { message: name, page });
        }
        // Passed on unchecked, a wrong number would seem to be this node's.
        if let ScMessage::Forward { acks, .. } = message {
            self.check_acks(name, page, acks)?;
        }
        self.learn_manager(name, page, from)?;
        self.holds.saw(turn.slice);
        if self.holds.end(page, turn, self.pages.me(), env).is_some() {
            self.parked.push((from, message));
            return Ok(());
        }
        let ScMessage::Forward { asked, write, contents, acks, requester, kept, .. } = message else {
            self.lose(page, to, env);
            self.send(to, &ScMessage::InvalidateAck { page, kept: again }, &[], env);
            return Ok(());
        };
        if write {
            self.lose(page, requester, env);
        } else if entry.state == ScState::Write {
            env.protect(page, 1, Access::Read);
            env.observe(Event::Shared, page, 1, requester);
            self.pages.entry(page).state = ScState::Owner;
            self.holds.lost(page, true, env.now());
            self.counters.exclusive_left += 1;
        }
        let answer = ScMessage::Pages {
            first: page,
            asked,
            served: 1,
            write,
            manager: from,
            untouched: false,
            acks,
            kept: kept || again,
        };
        env.observe(Event::Served { write }, page, 1, requester);
        if contents {
            self.send_pages(requester, &answer, page, 1, env);
        } else {
            self.send(requester, &answer, &[], env);
        }
        Ok(())
    }
}
