//! What the owner of pages does: serves requests and has copies given up.

use super::state::{ASKED, ErcState, HELD};
use super::{Erc, ErcMessage, Parked};
use crate::runs::{leading, runs, span};
use crate::{Access, Env, Event, Outcome, Page, Violation, Waiter};
use gondwana_topology::{NodeId, NodeSet};

impl Erc {
    pub(super) fn copies(&self, page: Page) -> NodeSet {
        self.pages.known(self.pages.get(page)).copied().unwrap_or_default()
    }

    /// Serves a request, page by page as far as each can be served now; puts the others off.
    pub(super) fn serve(
        &mut self,
        first: Page,
        count: u32,
        write: bool,
        requester: NodeId,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let mut served = std::mem::take(&mut self.scratch);
        for page in span(first, count) {
            let entry = *self.pages.entry(page);
            if !entry.state.is_owner() && !entry.flags.has(ASKED) {
                return Err(Violation::Unexpected { message: "Forward", page });
            }
            if self.must_wait(page, write, requester, env) {
                self.parked.push(Parked { page, write, requester });
            } else {
                served.push(page);
            }
        }
        for (first, count) in runs(&served) {
            if write {
                self.give(first, count, requester, env);
            } else {
                self.share(first, count, requester, env);
            }
        }
        served.clear();
        self.scratch = served;
        Ok(())
    }

    /// True if a request for a page cannot be served yet. One to write first has all other copies given up.
    fn must_wait(&mut self, page: Page, write: bool, requester: NodeId, env: &mut dyn Env) -> bool {
        let entry = *self.pages.entry(page);
        if !entry.state.is_owner() {
            return true;
        }
        if !write {
            return false;
        }
        if entry.flags.has(HELD) {
            return true;
        }
        // What was written since the copies went out must be released before the page leaves: the next owner's threads could
        // use its copy until the page comes.
        if entry.state == ErcState::Dirty || !self.copies(page).is_subset_of(requester) {
            self.invalidate(&[page], env);
        }
        !self.rounds.is_complete(self.pages.entry(page).round)
    }

    /// Sends copies.
    fn share(&mut self, first: Page, count: u32, requester: NodeId, env: &mut dyn Env) {
        let (mut next, end) = (first.0, first.0 + count);
        while next < end {
            let (first, most) = (Page(next), end - next);
            let count = self.pages.run(first, most, |entry| entry.state == ErcState::Exclusive);
            if count > 0 {
                env.protect(first, count, Access::Read);
                env.observe(Event::Shared, first, count, requester);
                self.counters.exclusive_left += u64::from(count);
            }
            for page in span(first, count) {
                self.pages.entry(page).state = ErcState::Clean;
            }
            // The page behind them is not exclusive.
            next += count + 1;
        }
        for page in span(first, count) {
            self.pages.record(page).insert(requester);
        }
        env.observe(Event::Served { write: false }, first, count, requester);
        self.send_pages(requester, &ErcMessage::Pages { first, count, write: false }, first, count, env);
    }

    /// Makes the requester the owner. Nobody else has copies.
    fn give(&mut self, first: Page, count: u32, requester: NodeId, env: &mut dyn Env) {
        env.protect(first, count, Access::None);
        for page in span(first, count) {
            let state = std::mem::replace(&mut self.pages.entry(page).state, ErcState::None);
            let exclusive = state == ErcState::Exclusive;
            self.counters.exclusive_left += u64::from(exclusive);
            self.counters.invalidations += 1;
            env.observe(Event::Left { exclusive, written: true }, page, 1, requester);
        }
        let (mut next, end) = (first.0, first.0 + count);
        while next < end {
            let first = Page(next);
            let has_copy = !self.copies(first).is_empty();
            let count = leading(first, end - next, |page| self.copies(page).is_empty() != has_copy);
            env.observe(Event::Served { write: true }, first, count, requester);
            let message = ErcMessage::Pages { first, count, write: true };
            if has_copy {
                self.send(requester, &message, &[], env);
            } else {
                self.send_pages(requester, &message, first, count, env);
            }
            for page in span(first, count) {
                self.pages.forget(page);
            }
            next += count;
        }
    }

    /// Has all copies of some pages (ascending) given up, as a new round; no round if there are none.
    fn invalidate(&mut self, pages: &[Page], env: &mut dyn Env) {
        let round = self.rounds.next();
        let mut lists: Vec<(NodeId, Vec<Page>)> = Vec::new();
        for &page in pages {
            let copies = self.pages.forget(page);
            let entry = self.pages.entry(page);
            if entry.state == ErcState::Dirty {
                entry.state = ErcState::Exclusive;
                self.counters.exclusive_entered += 1;
            }
            if !copies.is_empty() {
                entry.round = round;
            }
            for node in copies.iter() {
                match lists.iter_mut().find(|(reader, _)| *reader == node) {
                    Some((_, list)) => list.push(page),
                    None => lists.push((node, vec![page])),
                }
            }
        }
        if lists.is_empty() {
            return;
        }
        self.rounds.begin(lists.len());
        for (reader, pages) in lists {
            for (first, count) in runs(&pages) {
                env.observe(Event::InvalidationSent, first, count, reader);
            }
            self.counters.notices_sent += pages.len() as u64;
            self.send(reader, &ErcMessage::Invalidate { round, pages }, &[], env);
        }
    }

    /// Has the copies given up that lack what this node has written.
    pub(super) fn release_writes(&mut self, waiter: Waiter, env: &mut dyn Env) -> Outcome {
        if !self.dirty.is_empty() {
            let mut pages = std::mem::take(&mut self.dirty);
            pages.sort_unstable();
            pages.dedup();
            pages.retain(|&page| self.pages.entry(page).state == ErcState::Dirty);
            self.invalidate(&pages, env);
            pages.clear();
            self.dirty = pages;
        }
        if self.rounds.await_all(waiter) { Outcome::Wait } else { Outcome::Done }
    }

    pub(super) fn take_ack(&mut self, round: u64, env: &mut dyn Env) -> Result<(), Violation> {
        let Some(resumed) = self.rounds.acknowledge(round)? else { return Ok(()) };
        for waiter in resumed {
            env.resume(waiter);
        }
        self.serve_parked(env)
    }

    /// Serves the requests that were put off, as far as that is possible now.
    pub(super) fn serve_parked(&mut self, env: &mut dyn Env) -> Result<(), Violation> {
        for Parked { page, write, requester } in std::mem::take(&mut self.parked) {
            self.serve(page, 1, write, requester, env)?;
        }
        Ok(())
    }
}
