//! What a node does whose threads lack pages, and what comes of it.

use super::state::{ASKED, ErcState, HELD, NOBODY};
use super::{Erc, ErcMessage};
use crate::runs::{leading, runs, span};
use crate::{Access, Env, Event, Outcome, Page, Violation, Waiter};
use gondwana_topology::NodeId;

impl Erc {
    pub(super) fn take_fault(
        &mut self,
        page: Page,
        write: bool,
        most: u32,
        waiter: Waiter,
        env: &mut dyn Env,
    ) -> Result<Outcome, Violation> {
        if write {
            self.counters.write_faults += 1;
        } else {
            self.counters.read_faults += 1;
        }
        let state = self.pages.entry(page).state;
        if state.is_writable() || !write && state != ErcState::None {
            return Ok(Outcome::Done);
        }
        if state == ErcState::Clean {
            self.write_own(page, most, env);
            return Ok(Outcome::Done);
        }
        if !self.pages.entry(page).flags.has(ASKED) {
            self.ask(page, most, write, env)?;
            if !self.pages.entry(page).flags.has(ASKED) {
                return Ok(Outcome::Done);
            }
        }
        if state == ErcState::None && !self.waiting.iter().any(|(awaited, _)| *awaited == page) {
            self.counters.awaited += 1;
        }
        self.waiting.push((page, waiter));
        Ok(Outcome::Wait)
    }

    /// Lets threads write pages that this node owns.
    fn write_own(&mut self, first: Page, most: u32, env: &mut dyn Env) {
        let count = self.pages.run(first, most, |entry| entry.state == ErcState::Clean);
        for page in span(first, count) {
            let has_copies = !self.copies(page).is_empty();
            let entry = self.pages.entry(page);
            if has_copies {
                entry.state = ErcState::Dirty;
                self.dirty.push(page);
            } else {
                entry.state = ErcState::Exclusive;
                self.counters.exclusive_entered += 1;
            }
        }
        env.protect(first, count, Access::Write);
        env.observe(Event::Upgraded, first, 1, self.pages.me());
    }

    /// Asks for a page and for those after it that are in the same situation, at most `most` in all.
    fn ask(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) -> Result<(), Violation> {
        let (me, manager) = (self.pages.me(), self.pages.layout().manager(first));
        let like = *self.pages.entry(first);
        let layout = self.pages.layout();
        let most = leading(first, layout.clip(first, most), |page| layout.manager(page) == manager);
        let count = self.pages.run(first, most, |entry| {
            entry.state == like.state && !entry.flags.has(ASKED) && entry.owner == like.owner
        });
        if manager == me && like.owner == NOBODY {
            self.own_untouched(first, count, env);
            return Ok(());
        }
        for page in span(first, count) {
            self.pages.entry(page).flags.set(ASKED);
        }
        self.counters.fetches += 1;
        env.observe(Event::Asked, first, count, if manager == me { like.owner } else { manager });
        if manager == me {
            return self.route(first, count, write, me, env);
        }
        self.send(manager, &ErcMessage::Request { first, count, write }, &[], env);
        Ok(())
    }

    /// Makes this node the owner of pages that no thread has touched.
    fn own_untouched(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let me = self.pages.me();
        for page in span(first, count) {
            let manages = self.pages.layout().manager(page) == me;
            let entry = self.pages.entry(page);
            entry.state = ErcState::Exclusive;
            if manages {
                entry.owner = me;
            }
        }
        self.counters.first_touches += u64::from(count);
        self.counters.exclusive_entered += u64::from(count);
        env.protect(first, count, Access::Write);
    }

    pub(super) fn take_untouched(
        &mut self,
        from: NodeId,
        first: Page,
        count: u32,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Untouched";
        self.pages.check(first, count)?;
        for page in span(first, count) {
            let entry = *self.pages.entry(page);
            let fits = entry.state == ErcState::None && entry.flags.has(ASKED);
            if !fits || self.pages.layout().manager(page) != from {
                return Err(Violation::Unexpected { message: NAME, page });
            }
        }
        env.observe(Event::Arrived { bytes: 0 }, first, count, from);
        self.own_untouched(first, count, env);
        self.resume(first, count, env);
        self.serve_parked(env)
    }

    pub(super) fn take_pages(
        &mut self,
        from: NodeId,
        first: Page,
        count: u32,
        write: bool,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Pages";
        self.pages.check(first, count)?;
        let has_contents = self.pages.layout().are_contents(bulk, count);
        if !(has_contents || write && bulk.is_empty()) {
            return Err(Violation::Contents { message: NAME });
        }
        for page in span(first, count) {
            let entry = *self.pages.entry(page);
            let fits = match entry.state {
                ErcState::None => !bulk.is_empty(),
                ErcState::Read => write,
                _ => false,
            };
            if !fits || !entry.flags.has(ASKED) {
                return Err(Violation::Unexpected { message: NAME, page });
            }
        }
        let (state, access) =
            if write { (ErcState::Exclusive, Access::Write) } else { (ErcState::Read, Access::Read) };
        if bulk.is_empty() {
            env.observe(Event::Answered, first, count, from);
            env.observe(Event::Upgraded, first, count, from);
        } else {
            env.observe(Event::Arrived { bytes: bulk.len() as u64 }, first, count, from);
            let copies: Vec<Page> =
                span(first, count).filter(|&page| self.pages.entry(page).state == ErcState::Read).collect();
            for (first, count) in runs(&copies) {
                env.protect(first, count, Access::None);
            }
            env.install(first, bulk, access);
            self.counters.page_transfers += u64::from(count);
        }
        for page in span(first, count) {
            self.pages.entry(page).state = state;
        }
        if write {
            self.counters.home_moves += u64::from(count);
            self.counters.exclusive_entered += u64::from(count);
        }
        env.protect(first, count, access);
        self.resume(first, count, env);
        self.serve_parked(env)
    }

    /// Ends the requests for pages that are here now, and resumes the threads that wait for them.
    fn resume(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            self.pages.entry(page).flags.take(ASKED);
        }
        let (pages, held, hold) = (&mut self.pages, &mut self.held, self.options.hold);
        self.waiting.retain(|&(page, waiter)| {
            let came = page.0.wrapping_sub(first.0) < count;
            if came {
                env.resume(waiter);
                if hold && !pages.entry(page).flags.has(HELD) {
                    pages.entry(page).flags.set(HELD);
                    held.push(page);
                }
            }
            !came
        });
    }

    pub(super) fn take_invalidation(
        &mut self,
        from: NodeId,
        round: u64,
        pages: &[Page],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        for &page in pages {
            self.pages.check(page, 1)?;
            if self.pages.entry(page).state != ErcState::Read {
                return Err(Violation::Unexpected { message: "Invalidate", page });
            }
        }
        for (first, count) in runs(pages) {
            env.protect(first, count, Access::None);
            env.observe(Event::Invalidated, first, count, from);
        }
        for &page in pages {
            self.pages.entry(page).state = ErcState::None;
        }
        self.counters.notices_received += pages.len() as u64;
        self.counters.invalidations += pages.len() as u64;
        self.send(from, &ErcMessage::InvalidateAck { round }, &[], env);
        Ok(())
    }
}
