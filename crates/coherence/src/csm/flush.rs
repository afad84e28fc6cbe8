//! The release: diffs to the homes, notices to the sharers, and the wait for their acknowledgements.

use super::kept::Kept;
use super::message::HomeGrant;
use super::outbox::{FlushId, Notices, SentNotices};
use super::state::{ONLY_CLAIMED, PageEntry, REFETCH, REWRITTEN, State, TWIN, WRITE};
use super::{Csm, History};
use crate::runs::count_of;
use crate::{Env, Outcome, Page, SyncPoint, Violation, Waiter};
use gondwana_topology::{NodeId, NodeSet};
use std::collections::VecDeque;

/// A flush whose acknowledgements have not all come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Flush {
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
    /// Sharers have been sent updates.
    has_updates: bool,
    /// Some of them are of pages that stay writable, which cannot be brought up to date before the acknowledgement.
    has_kept: bool,
    /// It begins when the one before is complete (`ordered.rs`).
    waiting: bool,
    /// The nodes that keep diffs of it until they are told that it is complete (`uncommitted.rs`).
    keepers: NodeSet,
    /// They have been told ahead.
    committed: bool,
    waiters: Vec<Waiter>,
}

impl Flush {
    fn is_complete(&self) -> bool {
        self.entries == 0 && self.notices == 0 && self.held.is_empty() && !self.waiting
    }

    /// The nodes that show its diffs when they are told that it is complete.
    pub(super) fn keepers(&self) -> NodeSet {
        self.keepers
    }

    /// More was sent for the same flush.
    fn add(&mut self, sent: Self) {
        self.entries += sent.entries;
        self.notices += sent.notices;
        self.held.extend(sent.held);
        self.receivers = self.receivers.union(&sent.receivers);
        self.keepers = self.keepers.union(&sent.keepers);
        self.has_diffs |= sent.has_diffs;
        self.has_updates |= sent.has_updates;
        self.has_kept |= sent.has_kept;
    }

    /// True if all that is to be acknowledged has been sent to this node, and no other node gets a notice because of it.
    fn concerns_only(&self, peer: NodeId, nodes: u16) -> bool {
        let by_home = self.has_diffs && nodes > 2;
        !by_home && !self.waiting && self.held.is_empty() && self.receivers == NodeSet::only(peer)
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

    /// The number of the last flush that is not complete.
    pub(super) fn last(&self) -> Option<u64> {
        (!self.queue.is_empty()).then(|| self.next() - 1)
    }

    /// True if all that is under way is sent to this node and concerns no other one.
    pub(super) fn all_concern_only(&self, peer: NodeId, nodes: u16) -> bool {
        self.queue.iter().all(|flush| flush.concerns_only(peer, nodes))
    }

    /// Adds a flush that begins when the one before is complete.
    pub(super) fn wait(&mut self) {
        self.queue.push_back(Flush { waiting: true, ..Flush::default() });
    }

    /// True if the last flush has not begun.
    pub(super) fn is_last_waiting(&self) -> bool {
        self.queue.back().is_some_and(|last| last.waiting)
    }

    /// Notes notices that were sent for the last flush.
    pub(super) fn note_told(&mut self, sent: SentNotices) {
        if let Some(last) = self.queue.back_mut() {
            last.notices += i64::from(sent.messages);
            last.receivers = last.receivers.union(&sent.receivers);
        }
    }

    /// True if the first flush is to begin; it has from now on.
    pub(super) fn take_waiting(&mut self) -> bool {
        self.queue.front_mut().is_some_and(|first| std::mem::take(&mut first.waiting))
    }

    /// Adds to the first flush what was sent for it.
    pub(super) fn add(&mut self, sent: Flush) {
        if let Some(first) = self.queue.front_mut() {
            first.add(sent);
        }
    }

    /// The number of the last flush if somebody keeps its diffs and has not been told that it is complete, but is told now.
    pub(super) fn commit_early(&mut self) -> Option<u64> {
        let number = self.last()?;
        let last = self.queue.back_mut()?;
        let is_kept = !last.waiting && (last.has_diffs || last.has_updates);
        (is_kept && !std::mem::replace(&mut last.committed, true)).then_some(number)
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
        if self.options.ordered {
            self.begin_in_order(at.acquires_next, env);
        } else if !self.dirty.is_empty() {
            self.flush_dirty(at.acquires_next, env);
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

    /// Begins a flush of all dirty pages, unless there is nothing to send.
    pub(super) fn flush_dirty(&mut self, at_barrier: bool, env: &mut dyn Env) {
        let flush = self.send_all_dirty(self.flushes.next(), at_barrier, env);
        if !flush.is_complete() {
            self.flushes.queue.push_back(flush);
            self.commit_to_only_peer(env);
        }
    }

    /// [`Csm::send_dirty`] about all pages that are.
    pub(super) fn send_all_dirty(&mut self, number: u64, at_barrier: bool, env: &mut dyn Env) -> Flush {
        self.releases = self.releases.wrapping_add(1);
        let mut pages = std::mem::take(&mut self.dirty);
        pages.sort_unstable();
        pages.dedup();
        let flush = self.send_dirty(number, &pages, at_barrier, env);
        pages.retain(|&page| self.pages.entry(page).is_kept());
        self.dirty = pages;
        flush
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
        let (in_order, mut released) = (self.is_updated_in_order(), Vec::new());
        for &page in pages {
            self.withdraw(page, env);
            let entry = *self.pages.entry(page);
            if entry.state == State::HomeDirty && entry.has(TWIN) {
                self.release_at_home(page, number, at_barrier, &mut notices, env);
                continue;
            }
            if entry.state == State::HomeDirty {
                self.tell_of_home(page, number, &mut notices, env);
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
                let begin = bulk.len();
                if goes_on {
                    env.diff_and_keep(page, bulk)
                } else {
                    env.diff(page, bulk)
                };
                if in_order {
                    released.extend_from_slice(&bulk[begin..]);
                }
            });
            if !released.is_empty() {
                self.put_behind_kept(page, &released, env);
                self.note_sent(page, std::mem::take(&mut released));
            }
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
        flush.has_updates = sent.updates > 0;
        flush.receivers = flush.receivers.union(&sent.receivers);
        self.count_told(sent);
        self.scratch.batches = batches;
        self.scratch.notices = notices;
        flush
    }

    /// Tells of what this node has written of a page whose home it is, as part of flush `number`. The page is exclusive then.
    pub(super) fn tell_of_home(&mut self, page: Page, number: u64, notices: &mut Notices, env: &mut dyn Env) {
        let me = self.pages.me();
        let (entry, directory) = self.pages.split(page);
        entry.state = State::HomeExclusive;
        if entry.take(ONLY_CLAIMED) {
            directory.record(&mut entry.directory).history.wrote(me);
        }
        self.counters.exclusive_entered += 1;
        if self.tell(page, (me, number), &[], notices, env).any {
            self.pages.entry(page).set(REWRITTEN);
        }
    }

    pub(super) fn take_diff_ack(
        &mut self,
        from: NodeId,
        number: u64,
        (entries, pages): (u32, &[Page]),
        notices: u32,
        grants: &[HomeGrant],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "DiffAck";
        let flush = self.flushes.get(number)?;
        flush.entries =
            flush.entries.checked_sub(entries).ok_or(Violation::UnknownFlush { flush: number })?;
        flush.notices += i64::from(notices);
        if self.options.ordered {
            flush.keepers.insert(from);
        }
        pages.iter().for_each(|&page| self.forget_sent(page));
        for &HomeGrant { page, .. } in grants {
            self.pages.check(page, 1)?;
            let entry = self.pages.entry(page);
            if entry.state.is_home() || entry.state == State::Fetching || entry.flush != number {
                return Err(Violation::Unexpected { message: NAME, page });
            }
        }
        self.show_as_former_home(grants.iter().map(|grant| grant.page), env)?;
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

    /// `keeps`: the sharer keeps updates until it is told that the flush is complete.
    pub(super) fn take_notice_ack(
        &mut self,
        from: NodeId,
        number: u64,
        keeps: bool,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let flush = self.flushes.get(number)?;
        flush.notices -= 1;
        if keeps {
            flush.keepers.insert(from);
        }
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
            if self.options.ordered && !flush.committed {
                self.commit(&flush, self.flushes.completed, env);
            }
            for waiter in flush.waiters {
                env.resume(waiter);
            }
            self.begin_waiting(env);
            self.send_held(env);
        }
        if ended {
            self.send_answers(env);
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
