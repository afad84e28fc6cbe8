//! What the home of a page does for other nodes.

use super::message::{CsmMessage, DiffEntry, Grant, HomeGrant, pieces};
use super::outbox::{FlushId, Notices};
use super::state::{ONLY_CLAIMED, PINNED, PageEntry, State, TWIN};
use super::{Csm, History};
use crate::runs::{count_of, runs, span};
use crate::{Access, Env, Event, Page, Violation};
use gondwana_topology::{NodeId, NodeSet};

/// Who has been told that a page has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Anybody has been.
    pub any: bool,
    /// A notice to these is on its way; the others have it, or what has changed is on its way.
    pub awaited: NodeSet,
}

impl Csm {
    pub(super) fn serve_fetch(
        &mut self,
        first: Page,
        count: u32,
        write: bool,
        requester: NodeId,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Fetch";
        self.pages.check_node(NAME, requester)?;
        self.pages.check(first, count)?;
        self.withdraw(first, env);
        if write {
            self.settle_copied(first, env);
        }
        let entry = *self.pages.entry(first);
        if entry.state == State::Untouched && entry.probable_home != requester {
            let count = count.min(self.options.window);
            if entry.has(PINNED) && entry.probable_home == self.pages.me() {
                self.touch_first(first, count, env);
            } else if !self.touch_common(first, requester, env) {
                self.place_first(first, count, env);
            }
        }
        let entry = *self.pages.entry(first);
        if !entry.state.is_home() {
            // A hop always leads to a later home, and the requester knows whether it is home itself, unless it became
            // home while it asked.
            self.pages.check_node(NAME, entry.probable_home)?;
            if entry.probable_home == requester {
                let message = CsmMessage::Pages { first, asked: count, served: 1, grant: Grant::Raced };
                self.send(requester, &message, &[], env);
                return Ok(());
            }
            self.counters.fetches_forwarded += 1;
            let completed = self.completed[requester.index()];
            let message = CsmMessage::Fetch { first, count, write, requester, completed };
            self.send(entry.probable_home, &message, &[], env);
        } else if self.serve_common(first, count, write, requester, env) {
            // Nothing is left to do.
        } else if entry.state == State::Untouched {
            self.grant_untouched(first, count, write, requester, env);
        } else if self.postpone(first, count, write, requester) {
            // Its turn comes when the page's diffs are committed.
        } else {
            let flush = self.release_before(first, count.min(self.options.window), requester, env);
            let entry = *self.pages.entry(first);
            if self.may_grant(&entry, write, requester) {
                self.grant(first, count, requester, env);
            } else {
                self.share(first, count, write, requester, flush, env);
            }
        }
        Ok(())
    }

    fn grant_untouched(
        &mut self,
        first: Page,
        asked: u32,
        write: bool,
        requester: NodeId,
        env: &mut dyn Env,
    ) {
        let like = *self.pages.entry(first);
        let served = self.pages.run(first, asked, |entry| entry.is_alike(&like));
        for page in span(first, served) {
            let entry = self.pages.entry(page);
            entry.state = State::Invalid;
            entry.probable_home = requester;
            entry.take(PINNED);
        }
        let grant = if like.has(PINNED) { Grant::Placed } else { Grant::Untouched };
        let message = CsmMessage::Pages { first, asked, served, grant };
        env.observe(Event::Served { write }, first, served, requester);
        self.send(requester, &message, &[], env);
    }

    /// True if a request to write may take the home along: nobody would have to be told, nothing is unreleased
    /// here, and the page's past speaks for it.
    fn may_grant(&self, entry: &PageEntry, write: bool, requester: NodeId) -> bool {
        let known = self.known(entry);
        write
            && self.is_in_order(requester)
            && (self.options.migrate || entry.has(PINNED))
            && matches!(entry.state, State::HomeExclusive | State::HomeShared)
            && known.sharers.is_subset_of(requester)
            && known.unconfirmed(&self.completed).is_subset_of(requester)
            && entry.may_move_to(requester, &known.history)
    }

    fn grant(&mut self, first: Page, asked: u32, requester: NodeId, env: &mut dyn Env) {
        let mut histories = Vec::new();
        for page in span(first, asked.min(self.options.window)) {
            self.withdraw(page, env);
            self.settle_copied(page, env);
            let entry = *self.pages.entry(page);
            if !self.may_grant(&entry, true, requester) || self.is_uncommitted(page) {
                break;
            }
            let exclusive = self.is_exclusive(page);
            histories.push(self.leave_home(page, requester));
            env.observe(Event::Left { exclusive, written: true }, page, 1, requester);
        }
        let served = count_of(&histories);
        env.protect(first, served, Access::None);
        let message = CsmMessage::Pages { first, asked, served, grant: Grant::Home(histories) };
        env.observe(Event::Served { write: true }, first, served, requester);
        self.send_pages(requester, &message, first, served, env);
    }

    /// Makes `to` the probable home; returns the page's history for it.
    pub(super) fn leave_home(&mut self, page: Page, to: NodeId) -> History {
        if self.is_exclusive(page) {
            self.counters.exclusive_left += 1;
        }
        let (entry, directory) = self.pages.split(page);
        entry.state = State::Invalid;
        entry.probable_home = to;
        let pinned = entry.take(PINNED);
        directory.take(&mut entry.directory).history.moved().pinned(pinned)
    }

    /// Sends copies, when this flush is complete if there is one.
    fn share(
        &mut self,
        first: Page,
        asked: u32,
        write: bool,
        requester: NodeId,
        flush: Option<u64>,
        env: &mut dyn Env,
    ) {
        let mut served = 0;
        let mut exclusive = std::mem::take(&mut self.scratch.pages);
        let twins = self.pages.entry(first).has(TWIN);
        for page in span(first, asked.min(self.options.window)) {
            self.withdraw(page, env);
            let known = *self.pages.entry(page);
            if !known.state.is_home()
                || matches!(known.state, State::Untouched | State::HomeCommon)
                || known.has(TWIN) != twins
                || self.may_grant(&known, write, requester)
                || self.is_uncommitted(page)
            {
                break;
            }
            served += 1;
            let alone = self.is_exclusive(page);
            let (entry, directory) = self.pages.split(page);
            let known = directory.record(&mut entry.directory);
            known.sharers.insert(requester);
            known.claimed.remove(requester);
            // Where memory can be read, only who goes on writing the page is updated.
            if known.notified.remove(requester) && !self.options.one_sided {
                known.rereads.insert(requester);
            }
            if write {
                known.history.wrote_elsewhere(requester);
            }
            entry.take(ONLY_CLAIMED);
            if alone {
                entry.state = State::HomeShared;
                exclusive.push(page);
            }
        }
        for (first, count) in runs(&exclusive) {
            env.protect(first, count, Access::Read);
            env.observe(Event::Shared, first, count, requester);
        }
        self.counters.exclusive_left += exclusive.len() as u64;
        exclusive.clear();
        self.scratch.pages = exclusive;
        let message = CsmMessage::Pages { first, asked, served, grant: Grant::Copy };
        env.observe(Event::Served { write }, first, served, requester);
        if let Some(flush) = flush {
            self.answer_after(flush, requester, message, env);
        } else if twins {
            // What is not released may get back its value; in the twin is what is.
            let mut contents = std::mem::take(&mut self.scratch.bytes);
            span(first, served).for_each(|page| env.copy_twin(page, &mut contents));
            self.send(requester, &message, &contents, env);
            contents.clear();
            self.scratch.bytes = contents;
        } else {
            self.send_pages(requester, &message, first, served, env);
        }
    }

    /// The nodes that may have a notice about the page on its way to them.
    pub(super) fn unconfirmed(&mut self, page: Page) -> NodeSet {
        let entry = *self.pages.entry(page);
        self.known(&entry).unconfirmed(&self.completed)
    }

    /// True if there are sharers that may be sent what has changed instead of a notice. Who is updated does not fault, so that a
    /// monitor would not see that it reads.
    pub(super) fn can_update(&self, page: Page, env: &dyn Env) -> bool {
        self.may_update(env) && !self.known(&self.pages.get(page)).rereads.is_empty()
    }

    /// True if anybody may be sent what has changed instead of a notice.
    pub(super) fn may_update(&self, env: &dyn Env) -> bool {
        self.options.updates > 0 && !env.is_observed()
    }

    /// Tells the nodes that must know that flush `flush` of `origin` changed the page: every other sharer, and those
    /// that an earlier notice may not have reached yet. Those that get notices cease to be sharers. Notices are posted where that is
    /// possible, and otherwise added to `notices`. If the changes are at hand (`diff` is not empty), sharers that have fetched the
    /// page again after each notice can be updated instead; after some updates in a row they get a notice, which tells whether they
    /// still read it.
    pub(super) fn tell(
        &mut self,
        page: Page,
        (origin, flush): (NodeId, u64),
        diff: &[u8],
        notices: &mut Notices,
        env: &mut dyn Env,
    ) -> Told {
        let entry = *self.pages.entry(page);
        let known = self.known(&entry);
        let mut others = known.sharers;
        let keeps = others.remove(origin);
        let unconfirmed = known.unconfirmed(&self.completed);
        let can_update = !diff.is_empty() && known.updates < self.options.updates && !self.is_contested(page);
        let updated = if can_update { others.intersection(&known.rereads) } else { NodeSet::EMPTY };
        let updated = updated.difference(&unconfirmed).difference(&self.to_be_answered(page));
        let notified = others.difference(&updated).union(&unconfirmed);
        if notified.is_empty() && updated.is_empty() {
            return Told { any: false, awaited: NodeSet::EMPTY };
        }
        // A posted notice would overtake an update that is on its way, which would then bring an old value back.
        let posts = self.options.one_sided && known.rereads.is_empty();
        let awaited = if posts { self.post_notices(page, origin, notified, env) } else { notified };
        notices.add(awaited, page);
        notices.update(updated, page, diff);
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        known.sharers = updated;
        if keeps {
            known.sharers.insert(origin);
        }
        known.claimed = known.claimed.difference(&notified);
        known.rereads = known.rereads.difference(&notified);
        known.updates = if updated.is_empty() { 0 } else { known.updates + 1 };
        if !notified.is_empty() {
            // Who has a notice for certain need not be told again.
            (known.notified, known.origin, known.flush) = (awaited, origin, flush);
        }
        self.count_told_of(page, &awaited, env);
        Told { any: true, awaited }
    }

    /// Posts a notice to each of these nodes whose memory can be reached; returns the others.
    pub(super) fn post_notices(
        &mut self,
        page: Page,
        origin: NodeId,
        to: NodeSet,
        env: &mut dyn Env,
    ) -> NodeSet {
        let mut others = NodeSet::EMPTY;
        for node in to.iter() {
            if env.post_notice(node, page, origin) {
                self.counters.notices_sent += 1;
                env.observe(Event::NoticeSent, page, 1, node);
            } else {
                others.insert(node);
            }
        }
        others
    }

    /// Notes that `told` were sent notices about the page as part of a flush.
    pub(super) fn note_notified(&mut self, page: Page, origin: NodeId, flush: u64, told: NodeSet) {
        if told.is_empty() {
            return;
        }
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        known.notified = told;
        known.origin = origin;
        known.flush = flush;
    }

    pub(super) fn take_diffs(
        &mut self,
        flush: FlushId,
        entries: &[DiffEntry],
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Diffs";
        let origin = flush.origin;
        self.pages.check_node(NAME, origin)?;
        let diffs = pieces(NAME, entries.iter().map(|entry| entry.length), bulk)?;
        let (mut applied, mut patched) = (0, 0);
        let mut in_order = Vec::new();
        let mut grants = Vec::new();
        let mut batches = std::mem::take(&mut self.scratch.batches);
        let mut notices = std::mem::take(&mut self.scratch.notices);
        for (entry, diff) in entries.iter().zip(diffs) {
            let page = entry.page;
            self.pages.check(page, 1)?;
            if entry.length > 0 {
                env.observe(Event::DiffReceived { bytes: entry.length }, page, 1, origin);
            }
            self.withdraw(page, env);
            let known = *self.pages.entry(page);
            if known.state == State::Untouched {
                return Err(Violation::Unexpected { message: NAME, page });
            }
            if !known.state.is_home() {
                self.pages.check_node(NAME, known.probable_home)?;
                if known.probable_home == origin {
                    return Err(Violation::Unexpected { message: NAME, page });
                }
                self.counters.diffs_forwarded += 1;
                let limit = self.options.bulk_limit;
                let what = (page, entry.valid);
                batches.add(known.probable_home, flush, limit, what, env, |bulk, _| {
                    bulk.extend_from_slice(diff);
                });
                continue;
            }
            applied += 1;
            if self.options.ordered {
                in_order.push(page);
            }
            if known.state == State::HomeCommon {
                if !diff.is_empty() {
                    env.patch(page, diff);
                    patched += 1;
                }
                continue;
            }
            // Where the home is to be there, the others give up their copies, whatever was written.
            let wanted = entry.valid && known.has(PINNED) && known.probable_home == origin;
            if diff.is_empty() && !wanted {
                self.settle_copied(page, env);
                if let Some(history) = self.after_silent_writes(page, origin, entry.valid) {
                    grants.push(HomeGrant { page, history, notified: NodeSet::EMPTY });
                }
                continue;
            }
            let ordered = self.options.ordered;
            match known.has(TWIN) {
                _ if ordered || diff.is_empty() => (),
                true => env.patch_with_twin(page, diff),
                false => env.patch(page, diff),
            }
            patched += u64::from(!diff.is_empty());
            let alone = self.known(&known).sharers.is_subset_of(origin);
            self.note_writer(page, origin);
            let update = if !wanted && self.can_update(page, env) { diff } else { &[] };
            let told = self.tell(page, (origin, flush.number), update, &mut notices, env);
            if alone {
                self.settle_copied(page, env);
            } else {
                // What the others are told of now, this node may have to wait for, too.
                self.pages.entry(page).take(ONLY_CLAIMED);
            }
            if let Some(history) = self.after_diff(page, origin, entry.valid) {
                grants.push(HomeGrant { page, history, notified: told.awaited });
            } else if ordered && !diff.is_empty() {
                self.keep_diff(page, (origin, flush.number), diff.to_vec());
            }
        }
        self.counters.patches += patched;
        let granted: Vec<Page> = grants.iter().map(|grant| grant.page).collect();
        for (first, count) in runs(&granted) {
            env.protect(first, count, Access::None);
            env.observe(Event::Left { exclusive: false, written: true }, first, count, origin);
        }
        batches.send(flush, env);
        let sent = notices.send(flush, self.options.bulk_limit, env);
        self.count_told(sent);
        self.scratch.batches = batches;
        self.scratch.notices = notices;
        if applied > 0 {
            let message = CsmMessage::DiffAck {
                flush: flush.number,
                entries: applied,
                in_order,
                notices: sent.messages,
                grants,
            };
            self.send(origin, &message, &[], env);
        }
        Ok(())
    }

    /// Notes that a diff of `origin` has come, which shows that this node uses its copy.
    fn note_writer(&mut self, page: Page, origin: NodeId) {
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        known.wrote.insert(origin);
        if known.rereads.is_subset_of(origin) {
            known.updates = 0;
        }
    }

    /// Notes that `origin` wrote the page without changing it: nobody need be told. The home moves on the terms of
    /// [`Csm::after_diff`], provided that nobody else has a copy.
    fn after_silent_writes(&mut self, page: Page, origin: NodeId, valid: bool) -> Option<History> {
        let entry = *self.pages.entry(page);
        let known = self.known(&entry);
        if known.sharers.is_subset_of(origin) && known.unconfirmed(&self.completed).is_empty() {
            return self.after_diff(page, origin, valid);
        }
        let (entry, directory) = self.pages.split(page);
        directory.record(&mut entry.directory).history.wrote_elsewhere(origin);
        None
    }

    /// Notes a diff of `origin` in the directory, after its other sharers were taken out. Returns the page's history
    /// if its home moves to the origin: that has the only copy, all of it (`valid`), and nothing is unreleased here.
    fn after_diff(&mut self, page: Page, origin: NodeId, valid: bool) -> Option<History> {
        let migrate = self.options.migrate;
        let in_order = !self.is_uncommitted(page) && !self.is_updating(page, origin);
        let (entry, directory) = self.pages.split(page);
        let known = directory.record(&mut entry.directory);
        let only_copy = known.sharers == NodeSet::only(origin) && entry.state == State::HomeShared;
        let migrate = migrate || entry.has(PINNED);
        let moves = only_copy && valid && migrate && entry.may_move_to(origin, &known.history);
        if moves && in_order {
            return Some(self.leave_home(page, origin));
        }
        let (entry, directory) = self.pages.split(page);
        directory.record(&mut entry.directory).history.wrote_elsewhere(origin);
        None
    }
}
