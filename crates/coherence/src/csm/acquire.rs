//! Write notices and what an acquire does about them.

use super::Csm;
use super::message::{CsmMessage, Update, pieces};
use super::state::{PENDING, REFETCH, State, TWIN};
use super::uncommitted::apply;
use crate::runs::{count_of, runs};
use crate::{Access, Env, Event, Page, Violation};
use gondwana_topology::NodeId;

impl Csm {
    pub(super) fn take_notices(
        &mut self,
        from: NodeId,
        flush: u64,
        origin: NodeId,
        (pages, updates): (&[Page], &[Update]),
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Notices";
        self.pages.check_node(NAME, from)?;
        for &page in pages.iter().chain(updates.iter().map(|Update { page, .. }| page)) {
            self.pages.check(page, 1)?;
        }
        let diffs = pieces(NAME, updates.iter().map(|update| update.length), bulk)?;
        for (first, count) in runs(pages) {
            env.observe(Event::NoticeReceived, first, count, origin);
        }
        for &page in pages {
            self.take_notice(page, env);
        }
        for (&Update { page, length }, diff) in updates.iter().zip(diffs) {
            env.observe(Event::UpdateReceived { bytes: length }, page, 1, from);
            self.take_update(page, (origin, flush), diff, env);
        }
        self.counters.updates_received += updates.len() as u64;
        let keeps = self.options.ordered && !updates.is_empty();
        if origin == self.pages.me() {
            return self.take_notice_ack(origin, flush, keeps, env);
        }
        self.pages.check_node(NAME, origin)?;
        self.send(origin, &CsmMessage::NoticeAck { flush, keeps }, &[], env);
        Ok(())
    }

    /// Takes the notices that others have posted. They count from this acquire on, as if they had just been received.
    pub(super) fn take_posted(&mut self, env: &mut dyn Env) {
        let mut notices = std::mem::take(&mut self.scratch.posted);
        env.posted_notices(&mut notices);
        for (page, origin) in notices.drain(..) {
            // Others write the log.
            if self.pages.check(page, 1).is_ok() && self.pages.check_node("Notices", origin).is_ok() {
                env.observe(Event::NoticeReceived, page, 1, origin);
                self.take_notice(page, env);
            }
        }
        self.scratch.posted = notices;
    }

    fn take_notice(&mut self, page: Page, env: &mut dyn Env) {
        self.counters.notices_received += 1;
        // It may have become a copy without this node's doing.
        self.withdraw(page, env);
        self.note_change(page);
    }

    /// A copy of the page must not be used after the next acquire.
    fn note_change(&mut self, page: Page) {
        let entry = self.pages.entry(page);
        // Where there is no copy and none on its way, the page is fetched before the next access anyway.
        let copy = matches!(entry.state, State::Shared | State::Dirty | State::Fetching);
        if copy && !entry.has(PENDING) {
            entry.set(PENDING);
            self.pending.push(page);
        }
    }

    /// Brings a copy up to date. What is released can be seen before the acquire: only programs with data races can tell, if pages are
    /// not ordered.
    fn take_update(&mut self, page: Page, flush: (NodeId, u64), diff: &[u8], env: &mut dyn Env) {
        let entry = *self.pages.entry(page);
        let is_used = matches!(entry.state, State::Shared | State::Dirty);
        // Even if the copy is given up, or there is a notice about it: that may be older than the copy, and the home counts on the update.
        if !is_used && !matches!(entry.state, State::Invalid | State::StaleDirty | State::Deferred) {
            // A copy that has been asked for is served later, and so with what the home has sent before. Taken for one that has been
            // overtaken, it would be asked for again after the next acquire, and so on.
            return;
        }
        if !self.options.ordered {
            // Bytes that this node has written, too, were released to the writer before: they are not unflushed.
            return apply(page, diff, entry.has(TWIN), env);
        }
        let diff = self.without_sent(page, diff, env);
        if is_used {
            self.keep_diff(page, flush, diff);
        } else {
            apply(page, &diff, entry.has(TWIN), env);
        }
    }

    /// Gives up every copy that there is a notice about.
    pub(super) fn invalidate(&mut self, env: &mut dyn Env) {
        self.invalidate_but((Page(0), 0), env);
    }

    /// The same, but for a run of pages.
    pub(super) fn invalidate_but(&mut self, (first, count): (Page, u32), env: &mut dyn Env) {
        self.take_uncommitted(env);
        if self.pending.is_empty() {
            return;
        }
        let mut pages = std::mem::take(&mut self.pending);
        pages.sort_unstable();
        pages.dedup();
        self.update_kept(&mut pages, env);
        let mut but = Vec::new();
        pages.retain(|&page| {
            if page.0.wrapping_sub(first.0) < count {
                but.push(page);
                return false;
            }
            let entry = self.pages.entry(page);
            if !entry.take(PENDING) {
                return false;
            }
            let stale = match entry.state {
                State::Shared => State::Invalid,
                State::Dirty => State::StaleDirty,
                State::Fetching => {
                    entry.set(REFETCH);
                    return false;
                }
                _ => return false,
            };
            entry.state = stale;
            true
        });
        for (first, count) in runs(&pages) {
            env.protect(first, count, Access::None);
        }
        for &page in &pages {
            self.apply_hidden(page, env);
        }
        // One system call may be about pages of several homes.
        let home = |page: Page| self.pages.get(page).probable_home;
        for run in pages.chunk_by(|&a, &b| a.0 + 1 == b.0 && home(a) == home(b)) {
            env.observe(Event::Invalidated, run[0], count_of(run), home(run[0]));
        }
        self.counters.invalidations += pages.len() as u64;
        pages.clear();
        pages.extend(but);
        self.pending = pages;
    }
}
