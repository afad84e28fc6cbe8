//! Reading from another node's memory without asking it (Cashmere's remote operations, turned to reads).
//!
//! Where the nodes can reach each other's memory, a home leaves its pages *open* while its machine is not at work on them.
//! A node that lacks a page *visits* the home: it leaves its name at the page, takes the write access of the home's threads
//! away if they wrote without noting it, and copies. The home finds the names when it next *closes* the page, which it
//! does before anything else that it does about it; then they are sharers like any others.
//!
//! A visit is worth a `Fetch` and its answer, at the moment when the name is left:
//!
//! - Whatever was in force at the home then, is in the frame. A diff that comes later is found by the home together with
//!   the name, so that the visitor is sent a notice, and contents that are newer than the name do no harm.
//! - The visitor's machine does nothing else between leaving the name and having the copy, so that every notice meets
//!   the copy that it is about.
//! - Pages that are granted, given or touched for the first time are closed; whoever finds them so sends a message. So
//!   does a writer as long as the home may well move to it.

use super::Csm;
use super::state::{PENDING, PINNED, PageEntry, REFETCH, State, TWIN, WRITE};
use crate::runs::span;
use crate::{Access, Env, Incident, Offer, Page};

impl Csm {
    /// Keeps visitors from a page until the end of this call, and counts those who were there among its sharers. Does
    /// nothing if the page's home is elsewhere.
    pub(super) fn close(&mut self, page: Page, env: &mut dyn Env) {
        let state = self.entry(page).state;
        if !self.options.one_sided || !state.is_home() || state == State::Untouched {
            return;
        }
        let visitors = env.close(page);
        self.closed.push(page);
        if visitors.is_empty() {
            return;
        }
        let (entry, directory) = self.split(page);
        let known = directory.record(&mut entry.directory);
        known.sharers = known.sharers.union(&visitors);
        known.notified = known.notified.difference(&visitors);
        if state == State::HomeExclusive {
            entry.state = State::HomeShared;
            self.counters.exclusive_left += 1;
            for node in visitors.iter() {
                env.observe(Incident::Shared, page, 1, node);
            }
        }
    }

    /// Opens the pages that were closed, or came here, during this call.
    pub(super) fn reopen(&mut self, env: &mut dyn Env) {
        let mut closed = std::mem::take(&mut self.closed);
        if self.options.one_sided {
            closed.sort_unstable();
            closed.dedup();
            for &page in &closed {
                let entry = *self.entry(page);
                let exclusive = match entry.state {
                    State::HomeExclusive => true,
                    State::HomeShared | State::HomeDirty => false,
                    _ => continue,
                };
                env.open(page, Offer { exclusive, to_writers: self.stays(&entry) });
            }
        }
        closed.clear();
        self.closed = closed;
    }

    /// True if the home of a page is not likely to move to the next node that writes it.
    fn stays(&self, entry: &PageEntry) -> bool {
        if entry.has(PINNED) {
            entry.hint == self.me()
        } else {
            !self.options.migrate || self.known(entry).history.is_settled()
        }
    }

    /// Brings an unusable page, and those after it that are in the same situation, at most `most` in all, from the memory
    /// of their home. False if that is not possible: then somebody has to be asked.
    pub(super) fn visit(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) -> bool {
        let entry = *self.entry(first);
        let (home, merges) = (entry.hint, entry.has(TWIN));
        if !self.options.one_sided || entry.flush > self.flushes.completed() {
            return false;
        }
        let most = self.fetched_with(first, most, home);
        // Where there are unflushed writes, the home would not move in any case.
        let write = write && !merges;
        let count = env.visit(home, first, most, write);
        if count == 0 {
            return false;
        }
        for page in span(first, count) {
            let entry = self.entry(page);
            entry.flags &= !(PENDING | REFETCH | WRITE);
            entry.state = State::Shared;
        }
        let (mut copied, mut copies) = (first, count);
        if merges {
            env.merge_from(home, first);
            self.entry(first).state = State::Dirty;
            env.protect(first, 1, Access::Write);
            self.counters.merges += 1;
            (copied, copies) = (Page(first.0 + 1), count - 1);
        }
        if copies > 0 {
            env.install_from(home, copied, copies);
            self.admit(copied, copies, write, env);
        }
        self.counters.page_transfers += u64::from(count);
        self.counters.visits += u64::from(count);
        true
    }
}
