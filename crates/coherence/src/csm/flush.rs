//! The release: diffs to the homes, notices to the sharers, and the wait for their acknowledgements.

use super::kept::Kept;
use super::message::HomeGrant;
use super::outbox::FlushId;
use super::state::{ONLY_CLAIMED, PageEntry, REFETCH, REWRITTEN, State, TWIN, WRITE};
use super::{Csm, History};
use crate::runs::count_of;
use crate::{Env, Outcome, Page, SyncPoint, Violation, Waiter};
use gondwana_topology::{NodeId, NodeSet};
use std::collections::VecDeque;

/// A flush whose acknowledgements have not all come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Flush {
    /// Diffs sent and not acknowledged.
    entries: u32,
    /// Notice messages announced less those acknowledged. Negative while an acknowledgement is ahead of its
    /// announcement; that can't end the flush, because the announcement comes with an acknowledged diff.
    notices: i64,
    /// Pages that were dirty at the release but have a diff of an earlier flush under way.
    held: Vec<Page>,
    /// The nodes that have been sent diffs or notices.
    receivers: NodeSet,
    /// Diffs have been sent: their homes may send notices to further nodes.
    has_diffs: bool,
    /// Some of them are of pages that stay writable, which cannot be brought up to date before the acknowledgement.
    has_kept: bool,
    waiters: Vec<Waiter>,
}

impl Flush {
    fn is_complete(&self) -> bool {
        self.entries == 0 && self.notices == 0 && self.held.is_empty()
    }

    /// More was sent for the same flush.
    fn add(&mut self, sent: Self) {
        self.entries += sent.entries;
        self.notices += sent.notices;
        self.held.extend(sent.held);
        self.receivers = self.receivers.union(&sent.receivers);
        self.has_diffs |= sent.has_diffs;
        self.has_kept |= sent.has_kept;
    }

    /// True if all that is to be acknowledged has been sent to this node, and no other node gets a notice because of it.
    fn concerns_only(&self, peer: NodeId, nodes: u16) -> bool {
        let by_home = self.has_diffs && nodes > 2;
        !by_home && self.held.is_empty() && self.receivers == NodeSet::only(peer)
    }
}

/// The flushes of this node, numbered from 1. They complete in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Flushes {
    completed: u64,
    queue: VecDeque<Flush>,
}

impl Flushes {
    /// The number of the last flush that is complete, as are all before it.
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// True if every flush is complete.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn next(&self) -> u64 {
        self.completed + 1 + self.queue.len() as u64
    }

    fn get(&mut self, number: u64) -> Result<&mut Flush, Violation> {
        number
            .checked_sub(self.completed + 1)
            .and_then(|index| self.queue.get_mut(usize::try_from(index).ok()?))
            .ok_or(Violation::UnknownFlush { flush: number })
    }
}

impl Csm {
    /// Flushes all dirty pages.
    pub(super) fn flush(&mut self, at: SyncPoint, waiter: Waiter, env: &mut dyn Env) -> Outcome {
        if self.begin_flush(at, env).is_none() {
            return Outcome::Done;
        }
        if let Some(last) = self.flushes.queue.back_mut() {
            last.waiters.push(waiter);
        }
        Outcome::Wait
    }

    /// Begins to flush all dirty pages. Returns the number of the flush with which the release is complete; `None` if it is.
    pub(super) fn begin_flush(&mut self, at: SyncPoint, env: &mut dyn Env) -> Option<u64> {
        self.find_copied(env);
        if !self.dirty.is_empty() {
            self.releases = self.releases.wrapping_add(1);
            let mut pages = std::mem::take(&mut self.dirty);
            pages.sort_unstable();
            pages.dedup();
            self.flush_pages(&pages, at.acquires_next, env);
            pages.retain(|&page| self.pages.entry(page).is_kept());
            self.dirty = pages;
        }
        // Writes of the releasing thread can be in a flush that another thread began.
        let nodes = self.pages.layout().nodes();
        let merges = at.acquires_next && self.options.one_sided;
        let ends_early = |peer| {
            let under_way = &self.flushes.queue;
            under_way.iter().all(|flush| flush.concerns_only(peer, nodes) && !(merges && flush.has_kept))
        };
        if at.peer.is_some_and(ends_early) || self.flushes.is_empty() {
            return None;
        }
        Some(self.flushes.next() - 1)
    }

    /// Begins a flush of `pages` (ascending), unless there is nothing to send. `at_barrier`: see [`Csm::release_at_home`].
    pub(super) fn flush_pages(&mut self, pages: &[Page], at_barrier: bool, env: &mut dyn Env) {
        let flush = self.send_dirty(self.flushes.next(), pages, at_barrier, env);
        if !flush.is_complete() {
            self.flushes.queue.push_back(flush);
        }
    }

    /// Sends what is to be sent about `pages` (ascending), as part of flush `number`; returns what has to be waited
    /// for.
    fn send_dirty(&mut self, number: u64, pages: &[Page], at_barrier: bool, env: &mut dyn Env) -> Flush {
        let me = self.pages.me();
        let id = FlushId { number, origin: me, completed: self.flushes.completed(), is_own: true };
        let mut flush = Flush::default();
        self.stop_writers(pages, env);
        self.stop_idle_writers(pages, env);
        let mut batches = std::mem::take(&mut self.scratch.batches);
        let mut notices = std::mem::take(&mut self.scratch.notices);
        for &page in pages {
            self.withdraw(page, env);
            let entry = *self.pages.entry(page);
            if entry.state == State::HomeDirty && entry.has(TWIN) {
                self.release_at_home(page, number, at_barrier, &mut notices, env);
                continue;
            }
            if entry.state == State::HomeDirty {
                let (entry, directory) = self.pages.split(page);
                entry.state = State::HomeExclusive;
                if entry.take(ONLY_CLAIMED) {
                    directory.record(&mut entry.directory).history.wrote(me);
                }
                self.counters.exclusive_entered += 1;
                if self.tell(page, (me, number), &[], &mut notices, env).any {
                    self.pages.entry(page).set(REWRITTEN);
                }
                continue;
            }
            if !entry.has(TWIN) {
                continue;
            }
            if entry.flush > self.flushes.completed() {
                flush.held.push(page);
                continue;
            }
            let going_on = self.going_on(page);
            if going_on == Some(Kept::Idle) {
                continue;
            }
            let goes_on = going_on.is_some();
            // Of a page that was kept and then not written the home need not hear.
            let valid = entry.state == State::Dirty && (goes_on || !entry.is_kept());
            let to = (page, valid);
            let limit = self.options.bulk_limit;
            let home = entry.probable_home;
            let sent = batches.add(home, id, limit, to, env, |bulk, env| {
                if goes_on {
                    env.diff_and_keep(page, bulk)
                } else {
                    env.diff(page, bulk)
                };
            });
            if !goes_on {
                env.drop_twin(page);
                let entry = self.pages.entry(page);
                entry.flags.0 &= !(TWIN | REWRITTEN);
                if sent.is_some_and(|length| length > 0) {
                    entry.set(REWRITTEN);
                }
            }
            let entry = self.pages.entry(page);
            match entry.state {
                State::Dirty if goes_on => (),
                State::Dirty => entry.state = State::Shared,
                State::StaleDirty => entry.state = State::Invalid,
                // The answer under way can be older than this diff and has no twin to be merged with.
                State::Fetching if sent.is_some() => entry.set(REFETCH),
                _ => (),
            }
            if let Some(length) = sent {
                entry.flush = number;
                flush.entries += 1;
                flush.has_diffs = true;
                flush.has_kept |= goes_on;
                flush.receivers.insert(home);
                self.counters.diffs += u64::from(length > 0);
                self.counters.diff_bytes += u64::from(length);
            }
        }
        batches.send(id, env);
        let sent = notices.send(id, self.options.bulk_limit, env);
        flush.notices = i64::from(sent.messages);
        flush.receivers = flush.receivers.union(&sent.receivers);
        self.count_told(sent);
        self.scratch.batches = batches;
        self.scratch.notices = notices;
        flush
    }

    pub(super) fn take_diff_ack(
        &mut self,
        number: u64,
        entries: u32,
        notices: u32,
        grants: &[HomeGrant],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "DiffAck";
        let flush = self.flushes.get(number)?;
        flush.entries =
            flush.entries.checked_sub(entries).ok_or(Violation::UnknownFlush { flush: number })?;
        flush.notices += i64::from(notices);
        for &HomeGrant { page, .. } in grants {
            self.pages.check(page, 1)?;
            let entry = self.pages.entry(page);
            if entry.state.is_home() || entry.state == State::Fetching || entry.flush != number {
                return Err(Violation::Unexpected { message: NAME, page });
            }
        }
        for run in grants.chunk_by(|a, b| a.page.0 + 1 == b.page.0) {
            let histories: Vec<History> = run.iter().map(|grant| grant.history).collect();
            self.become_home(run[0].page, &histories, env);
            for grant in run {
                self.note_notified(grant.page, self.pages.me(), number, grant.notified);
            }
            self.resume(run[0].page, count_of(run), env);
        }
        self.complete_flushes(env);
        Ok(())
    }

    pub(super) fn take_notice_ack(&mut self, number: u64, env: &mut dyn Env) -> Result<(), Violation> {
        self.flushes.get(number)?.notices -= 1;
        self.complete_flushes(env);
        Ok(())
    }

    /// Ends the flushes that are complete and begins what waited for that.
    fn complete_flushes(&mut self, env: &mut dyn Env) {
        let mut ended = false;
        while self.flushes.queue.front().is_some_and(Flush::is_complete) {
            let flush = self.flushes.queue.pop_front().expect("there is a front");
            self.flushes.completed += 1;
            self.note_completed(self.pages.me(), self.flushes.completed);
            ended = true;
            for waiter in flush.waiters {
                env.resume(waiter);
            }
            self.send_held(env);
        }
        if ended {
            self.request_deferred(env);
        }
    }

    /// Sends the diffs that had to wait for the flush that has just ended.
    fn send_held(&mut self, env: &mut dyn Env) {
        for index in 0..self.flushes.queue.len() {
            let held = std::mem::take(&mut self.flushes.queue[index].held);
            if held.is_empty() {
                continue;
            }
            let number = self.flushes.completed + 1 + index as u64;
            let sent = self.send_dirty(number, &held, false, env);
            self.flushes.queue[index].add(sent);
        }
    }

    fn request_deferred(&mut self, env: &mut dyn Env) {
        let completed = self.flushes.completed();
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.retain(|&page| {
            let entry: PageEntry = *self.pages.entry(page);
            if entry.state != State::Deferred {
                return false;
            }
            let due = entry.flush <= completed;
            if due {
                self.request(page, 1, entry.has(WRITE), env);
            }
            !due
        });
        self.deferred = deferred;
    }
}
