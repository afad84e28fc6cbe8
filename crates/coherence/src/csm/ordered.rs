//! Pages in order: a thread that reads what another node has written finds all that was written there before, whatever it is that
//! the two synchronise by. So programs may do so by plain loads and stores, as long as somebody else sees to their atomic instructions.
//!
//! Under release consistency a node may show what it writes at once: only who synchronises may tell, and all is released by then. Here
//! nothing that a node has written is shown before all that it had written earlier is released:
//!
//! - *One release at a time.* All pages are protected before the first is compared, so that a release is a snapshot of what the node's
//!   threads wrote. The next one begins when it is complete: a page that had to wait for its last diff would be compared later
//!   than the others.
//! - *A diff is shown when it is committed* (`uncommitted.rs`). The home tells the sharers, or updates them, and acknowledges at once. It and
//!   those that are updated apply the diff when the origin says that all acknowledgements have come. Requests for a page wait until its
//!   diffs are committed. The only peer of a node can be told at once.
//! - *The home shows what it has written when it is released.* An answer with contents begins a release, and leaves when that is
//!   complete. Of a page that is written meanwhile, the answer has what was there when it was asked for.
//! - *What arrives is an acquire:* contents, and diffs that are committed. The pages that have come keep their notices, which may be
//!   about later writes.
//! - *An acquire takes pages with uncommitted diffs from a node's threads*, until these are committed: the node that wrote them
//!   may have told a third one that they are, from which this node has heard.
//!
//! Nothing says when a thread looks at what others have written. So that nobody waits for ever, a node releases and acquires every so
//! often by itself ([`Protocol::catch_up`](crate::Protocol::catch_up)), unless its threads do; less often, the more pages are written.
//!
//! Causality does the rest: what a node shows, it had acquired or written before it released.

use super::Csm;
use super::flush::Flush;
use super::message::{CsmMessage, Grant};
use super::outbox::FlushId;
use super::state::{State, TWIN};
use super::uncommitted::Unshown;
use crate::runs::span;
use crate::{Env, Page, Violation};
use gondwana_topology::{NodeId, NodeSet};
use std::collections::VecDeque;
use std::time::Duration;

/// How long what is written is not seen at most, and the same for each page that is to be released: then such releases take a small
/// part of the time, of which a page takes some 20 us.
const UNSEEN: Duration = Duration::from_millis(10);
const UNSEEN_OF_PAGE: Duration = Duration::from_micros(400);

/// A request for a page with an uncommitted diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Postponed {
    first: Page,
    count: u32,
    write: bool,
    requester: NodeId,
}

/// An answer with contents, which waits for a release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    to: NodeId,
    message: CsmMessage,
    contents: Vec<u8>,
    flush: u64,
}

/// What ordered pages wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Order {
    pub(super) unshown: Unshown,
    postponed: Vec<Postponed>,
    /// In the order in which they are to leave.
    answers: VecDeque<Answer>,
    /// This node has released, or acquired, since it last caught up.
    released: bool,
    pub(super) acquired: bool,
}

impl Csm {
    /// True if this node may show another one what it has written.
    pub(super) fn is_in_order(&self, to: NodeId) -> bool {
        let nodes = self.pages.layout().nodes();
        !self.options.ordered || self.dirty.is_empty() && self.flushes.all_concern_only(to, nodes)
    }

    /// [`Protocol::catch_up`](crate::Protocol::catch_up).
    pub(super) fn show_and_see(&mut self, env: &mut dyn Env) -> Option<Duration> {
        if !self.options.ordered {
            return None;
        }
        let pages = u32::try_from(self.dirty.len()).unwrap_or(u32::MAX);
        if !self.order.released {
            self.begin_in_order(false, env);
        }
        if !self.order.acquired {
            self.invalidate(env);
        }
        (self.order.released, self.order.acquired) = (false, false);
        Some(UNSEEN.max(UNSEEN_OF_PAGE.saturating_mul(pages)))
    }

    /// Keeps a request until the diffs of its page are committed; false if there are none.
    pub(super) fn postpone(&mut self, first: Page, count: u32, write: bool, requester: NodeId) -> bool {
        let postpones = self.is_uncommitted(first);
        if postpones {
            self.order.postponed.push(Postponed { first, count, write, requester });
        }
        postpones
    }

    /// Serves the requests whose pages have no uncommitted diffs any more.
    pub(super) fn serve_postponed(&mut self, env: &mut dyn Env) -> Result<(), Violation> {
        for request in std::mem::take(&mut self.order.postponed) {
            let Postponed { first, count, write, requester } = request;
            self.serve_fetch(first, count, write, requester, env)?;
        }
        Ok(())
    }

    /// True if sharers are updated in order.
    pub(super) fn is_updated_in_order(&self) -> bool {
        self.options.ordered && self.options.updates > 0
    }

    /// All sharers of a page that this home writes get notices of the next release: what is compared could leave ahead of what was written before.
    pub(super) fn write_without_twin(&mut self, page: Page, env: &mut dyn Env) {
        if self.pages.entry(page).take(TWIN) {
            env.drop_twin(page);
        }
    }

    /// True of a page of this home that nobody here has written since it was shown to another node: a release was begun then.
    fn is_shown(&self, page: Page) -> bool {
        let entry = self.pages.get(page);
        entry.state == State::HomeShared && !self.is_unused(&entry)
    }

    /// Begins to release what this node has written before it shows `count` pages from `first` to `to`. Returns the flush that has to
    /// be complete before they leave, if there is one.
    pub(super) fn release_before(
        &mut self,
        first: Page,
        count: u32,
        to: NodeId,
        env: &mut dyn Env,
    ) -> Option<u64> {
        if !self.options.ordered {
            return None;
        }
        let count = self.pages.layout().clip(first, count);
        if !span(first, count).all(|page| self.is_shown(page)) {
            self.begin_in_order(false, env);
        }
        let number = self.flushes.last()?;
        if self.flushes.is_last_waiting() {
            // They are written until that flush begins: what they are now is told of at once.
            let me = self.pages.me();
            let mut notices = std::mem::take(&mut self.scratch.notices);
            for page in span(first, count) {
                if self.pages.entry(page).state == State::HomeDirty {
                    self.write_without_twin(page, env);
                    self.tell_of_home(page, number, &mut notices, env);
                }
            }
            let id = FlushId { number, origin: me, completed: self.flushes.completed(), is_own: true };
            let sent = notices.send(id, self.options.bulk_limit, env);
            self.count_told(sent);
            self.scratch.notices = notices;
            self.flushes.note_told(sent);
        }
        let nodes = self.pages.layout().nodes();
        (!self.flushes.all_concern_only(to, nodes)).then_some(number)
    }

    /// Sends contents as they are now, when the flush is complete.
    pub(super) fn answer_after(&mut self, flush: u64, to: NodeId, message: CsmMessage, env: &mut dyn Env) {
        let mut contents = Vec::new();
        if let CsmMessage::Pages { first, served, grant: Grant::Copy, .. } = &message {
            for page in span(*first, *served) {
                env.make_twin(page);
                env.copy_twin(page, &mut contents);
                env.drop_twin(page);
            }
        }
        self.order.answers.push_back(Answer { to, message, contents, flush });
    }

    /// True if a sharer may not show yet what this home has updated it of.
    pub(super) fn is_updating(&self, page: Page, sharer: NodeId) -> bool {
        let updates = self.is_updated_in_order() && !self.flushes.is_empty();
        updates && self.known(&self.pages.get(page)).rereads.contains(sharer)
    }

    /// The nodes to which an answer with older contents of this page is yet to be sent.
    pub(super) fn to_be_answered(&self, page: Page) -> NodeSet {
        let has = |answer: &&Answer| match &answer.message {
            CsmMessage::Pages { first, served, .. } => page.0.wrapping_sub(first.0) < *served,
            _ => false,
        };
        self.order.answers.iter().filter(has).map(|answer| answer.to).collect()
    }

    /// Sends the answers whose flushes are complete.
    pub(super) fn send_answers(&mut self, env: &mut dyn Env) {
        let completed = self.flushes.completed();
        while let Some(answer) = self.order.answers.pop_front_if(|answer| answer.flush <= completed) {
            self.send(answer.to, &answer.message, &answer.contents, env);
        }
    }

    /// Begins a release if there is something to release: now, or when the one under way is complete.
    pub(super) fn begin_in_order(&mut self, at_barrier: bool, env: &mut dyn Env) {
        self.order.released = true;
        if self.dirty.is_empty() {
            return;
        }
        if self.flushes.is_empty() {
            self.flush_dirty(at_barrier, env);
        } else if !self.flushes.is_last_waiting() {
            self.flushes.wait();
        }
    }

    /// Begins the release that has waited for the one that has just ended.
    pub(super) fn begin_waiting(&mut self, env: &mut dyn Env) {
        if self.flushes.take_waiting() {
            let number = self.flushes.completed() + 1;
            let sent = self.send_all_dirty(number, false, env);
            self.flushes.add(sent);
            self.commit_to_only_peer(env);
        }
    }

    /// Tells those that keep diffs of a flush that it is complete.
    pub(super) fn commit(&mut self, flush: &Flush, number: u64, env: &mut dyn Env) {
        for keeper in flush.keepers().iter() {
            self.send(keeper, &CsmMessage::Commit { flush: number }, &[], env);
        }
    }

    /// The same ahead of the acknowledgements where there is nobody else who could be told.
    pub(super) fn commit_to_only_peer(&mut self, env: &mut dyn Env) {
        let (true, Some(peer)) = (self.options.ordered, self.pages.layout().only_peer()) else { return };
        if let Some(number) = self.flushes.commit_early() {
            self.send(peer, &CsmMessage::Commit { flush: number }, &[], env);
        }
    }
}
