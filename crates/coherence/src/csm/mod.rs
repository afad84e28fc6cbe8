//! Two-level, home-based release consistency (Cashmere, sections 2.1 to 2.3).
//!
//! Threads of one node share its frames in hardware. Between nodes, each page has a *home*, whose frame is the
//! master copy. A node that writes a page homed elsewhere keeps a *twin*; at a release it sends the *diff* against
//! the twin to the home, and the home sends *write notices* to the *sharers*. At an acquire, a node gives up the
//! copies that it has notices about. A home writes without a twin, and a page that no other node has a copy of
//! costs nothing at all (*exclusive*).
//!
//! The home starts at the page's manager, goes to the node that touches the page first, and moves to a node that
//! goes on writing the page alone ([`History`]). Each node remembers a *probable home* for each page: a node that was home
//! once. A request that reaches a former home is passed on to the probable home; each hop leads to a later home, and a
//! grant travels before anything that is passed on behind it, so the chase ends.
//!
//! A policy can decide the home instead ([`Protocol::place`]): then it stays there. See `place.rs`.
//!
//! # Why nothing is lost
//!
//! - *One diff of a page under way.* A page whose diff is not acknowledged is not flushed again, because a diff that
//!   was passed on could overtake or be overtaken by the next one while the home moves; the later flush waits.
//! - *No fetch behind a diff.* For the same reason a page is not fetched before its diff is acknowledged: the
//!   answer could lack the node's own writes.
//! - *Diff behind a fetch.* A page that is flushed while its fetch is on its way (it was `StaleDirty`) loses its
//!   twin, so the answer, which may or may not contain the diff, is thrown away and the page fetched again. Such a
//!   fetch never asks for the home, so that no home is granted on contents that are thrown away.
//! - *Notice behind a fetch.* A notice that arrives while a fetch is under way can be about a change that the
//!   answer lacks, when the home has moved since. It is kept for the copy that arrives; if an acquire comes first,
//!   the answer is thrown away and the page fetched again.
//! - *Notice on its way.* A node that was sent a notice is no sharer any more, and yet uses its copy until the
//!   notice arrives. A flush that changes the page meanwhile must not be complete before that: the same node is
//!   sent another notice, which the later flush waits for, until the home knows that the earlier one was received
//!   (each node says with its requests which of its flushes are complete). For the same reason a page is neither
//!   exclusive nor moved with a fetch while such a notice may be on its way.
//! - *Posted.* Where nodes reach each other's memory, a notice is left in the sharer's notice log instead ([`Env::post_notice`]), and the
//!   sharer looks there at each acquire. It counts as received when it is posted: whoever acquires because of something
//!   that came later finds it. A notice older than the copy that it meets costs a fetch, and nothing else.
//! - *Released to one peer.* A release that only one peer can learn of does not wait for what that peer acknowledges
//!   ([`SyncPoint::peer`](crate::SyncPoint::peer)): the peer receives it before the message by which it learns. It passes on
//!   only what it has received, and it waits for its own notices. So no third node may still lack a notice: a diff can make
//!   its home send some, so that only among two nodes a flush with diffs is one that concerns the peer alone.
//! - *Updated.* A sharer can be sent what has changed instead of a notice. It stays a sharer: it has received the copy that the
//!   home served it before by the same channel, and applies the update whatever notices it has.
//! - *Granted with a diff.* A home that is granted with the acknowledgement of a diff comes without contents. The
//!   origin is a sharer that was sent no notice since it got its copy, so the frame has every byte; whatever its
//!   protection is by then.
//! - *Protection first.* Write access is taken away before a page is copied or compared, so that a later write
//!   faults and is seen. What readers copy beside writers is compared before these release (`one_sided.rs`).

mod acquire;
mod common;
mod fault;
mod flush;
mod home;
mod kept;
mod message;
mod one_sided;
mod options;
mod ordered;
mod outbox;
mod part;
mod place;
mod policy;
mod state;
mod uncommitted;

pub use message::{CsmMessage, DiffEntry, Grant, HomeGrant, Update};
pub use options::CsmOptions;
pub(crate) use options::{INFO, INVALIDATE, ORDERED};
pub(crate) use part::Leaving;
pub use policy::History;
pub use state::State;

use crate::message::{Encoded, Encoder};
use crate::page_table::PageTable;
use crate::registry::CommonAfter;
use crate::runs::span;
use crate::{
    Access, Counters, Env, HomeRole, Layout, Outcome, Page, PlacedPages, Protocol, SyncPoint, Violation,
    Waiter,
};
use flush::Flushes;
use gondwana_topology::{NodeId, NodeSet};
use ordered::Order;
use outbox::{DiffBatches, FlushId, Notices, SentNotices};
use state::{DirectoryEntry, PENDING, PINNED, PageEntry, TWIN};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// What one node knows about one page, for reports and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageView {
    /// The node's role.
    pub state: State,
    /// A twin exists.
    pub twin: bool,
    /// A write notice waits for the next acquire.
    pub notice_pending: bool,
    /// The node that a request would be sent to; meaningless at the home.
    pub probable_home: NodeId,
    /// At the home: the nodes with a copy that were not sent a notice.
    pub sharers: NodeSet,
    /// At the home: the node that was asked to be it.
    pub placed: Option<NodeId>,
}

/// The `csm` protocol on one node.
///
/// Two machines are equal, and hash alike, if they will behave alike: counters don't count.
#[derive(Clone, Debug)]
pub struct Csm {
    options: CsmOptions,
    pages: PageTable<PageEntry, DirectoryEntry>,
    /// Pages that were made writable with others having copies since the last flush. May list a page that is
    /// clean by now, or one twice.
    dirty: Vec<Page>,
    /// Pages that threads went on writing over the last release, ascending, and over how many in a row they were not written; may
    /// list a page that is an ordinary one by now.
    kept: Vec<(Page, u8)>,
    /// Releases with dirty pages so far.
    releases: u32,
    /// Pages with a pending notice; may list a page that has none any more, or one twice.
    pending: Vec<Page>,
    /// Threads that wait for a page.
    waiting: Vec<(Page, Waiter)>,
    /// Pages in state `Deferred`; may list a page that left that state.
    deferred: Vec<Page>,
    /// Pages of this home that are not open to other nodes while a call lasts; may list one twice. Empty between calls.
    withdrawn: Vec<Page>,
    /// Pages that others were found to have come for during this call, of which nobody has been told yet.
    shared: Vec<(NodeId, Page)>,
    /// Runs of pages that this node has touched first and not exposed since.
    fresh: Vec<(Page, u32)>,
    /// What was asked for last had been touched by nobody.
    found_untouched: bool,
    /// Pages of this home that become common at the end of a call; may list one twice. Empty between calls.
    contested: Vec<Page>,
    flushes: Flushes,
    order: Order,
    /// The last flush of each node that is known to be complete.
    completed: Vec<u64>,
    counters: Counters,
    encoder: Encoder,
    /// Reused lists; empty between calls.
    scratch: Scratch,
}

/// Lists that would otherwise be allocated anew for each flush.
#[derive(Clone, Debug, Default)]
struct Scratch {
    pages: Vec<Page>,
    waiters: Vec<Waiter>,
    batches: DiffBatches,
    notices: Notices,
    posted: Vec<(Page, NodeId)>,
    bytes: Vec<u8>,
}

impl Csm {
    /// The machine of node `layout.me()`.
    #[must_use]
    pub fn new(layout: Layout, options: CsmOptions) -> Self {
        let completed = vec![0; usize::from(layout.nodes())];
        let options = options.in_order();
        Self {
            pages: PageTable::new(layout),
            options,
            dirty: Vec::new(),
            kept: Vec::new(),
            releases: 0,
            pending: Vec::new(),
            waiting: Vec::new(),
            deferred: Vec::new(),
            withdrawn: Vec::new(),
            shared: Vec::new(),
            fresh: Vec::new(),
            found_untouched: false,
            contested: Vec::new(),
            flushes: Flushes::default(),
            order: Order::default(),
            completed,
            counters: Counters::default(),
            encoder: Encoder::default(),
            scratch: Scratch::default(),
        }
    }

    /// What this node knows about a page.
    ///
    /// # Panics
    /// If the page is outside the span.
    #[must_use]
    pub fn page(&self, page: Page) -> PageView {
        assert!(self.pages.layout().holds(page, 1), "page {} is outside the span", page.0);
        let entry = self.pages.get(page);
        PageView {
            state: entry.state,
            twin: entry.has(TWIN),
            notice_pending: entry.has(PENDING),
            probable_home: entry.probable_home,
            sharers: self.known(&entry).sharers,
            placed: (entry.state.is_home() && entry.has(PINNED)).then_some(entry.probable_home),
        }
    }

    /// True if no fetch and no flush of this node is in progress.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.flushes.is_empty()
    }

    fn send(&mut self, to: NodeId, message: &CsmMessage, bulk: &[u8], env: &mut dyn Env) {
        self.encoder.with(message, |message| env.send(to, message, bulk));
    }

    fn send_pages(&mut self, to: NodeId, message: &CsmMessage, first: Page, count: u32, env: &mut dyn Env) {
        self.encoder.with(message, |message| env.send_pages(to, message, first, count));
    }

    fn count_told(&mut self, sent: SentNotices) {
        self.counters.notices_sent += sent.notices;
        self.counters.updates_sent += sent.updates;
    }

    /// What the directory knows about a page.
    fn known(&self, entry: &PageEntry) -> DirectoryEntry {
        self.pages.known(*entry).copied().unwrap_or_default()
    }

    /// Notes which flushes of a node are complete; an earlier number can come later by another way.
    fn note_completed(&mut self, node: NodeId, completed: u64) {
        if let Some(known) = self.completed.get_mut(node.index()) {
            *known = completed.max(*known);
        }
    }

    /// Resumes the threads that wait for one of `count` pages from `first`, in the order in which they came. Those
    /// whose page is being fetched again go on waiting.
    fn resume(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let mut resumed = std::mem::take(&mut self.scratch.waiters);
        let pages = &self.pages;
        self.waiting.retain(|&(page, waiter)| {
            let inside = page.0.wrapping_sub(first.0) < count;
            let waits = !inside || matches!(pages.get(page).state, State::Fetching | State::Deferred);
            if !waits {
                resumed.push(waiter);
            }
            waits
        });
        for waiter in resumed.drain(..) {
            env.resume(waiter);
        }
        self.scratch.waiters = resumed;
    }

    /// [`Protocol::message`] of a decoded message.
    pub(crate) fn handle(
        &mut self,
        from: NodeId,
        message: CsmMessage,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let result = match message {
            CsmMessage::Fetch { first, count, write, requester, completed } => {
                self.note_completed(requester, completed);
                self.serve_fetch(first, count, write, requester, env)
            }
            CsmMessage::Pages { first, asked, served, grant } => {
                self.take_pages(from, first, asked, served, grant, bulk, env)
            }
            CsmMessage::Diffs { flush, origin, completed, entries } => {
                self.note_completed(origin, completed);
                self.take_diffs(
                    FlushId { number: flush, origin, completed, is_own: false },
                    &entries,
                    bulk,
                    env,
                )
            }
            CsmMessage::DiffAck { flush, entries, in_order, notices, grants } => {
                self.take_diff_ack(from, flush, (entries, &in_order), notices, &grants, env)
            }
            CsmMessage::Commit { flush } => self.take_commit(from, flush, env),
            CsmMessage::Notices { flush, origin, pages, updates } => {
                self.take_notices(from, flush, origin, (&pages, &updates), bulk, env)
            }
            CsmMessage::NoticeAck { flush, keeps } => self.take_notice_ack(from, flush, keeps, env),
            CsmMessage::Common { runs } => self.take_commons(from, &runs, false, env),
            CsmMessage::Touched { first, count } => self.take_commons(from, &[(first, count)], true, env),
            CsmMessage::Place { first, count, home, used } => self.take_place(first, count, home, used, env),
            CsmMessage::Placed { first, count } => self.take_placed(from, first, count, bulk, env),
        };
        self.end_call(env);
        result
    }

    /// Everything that decides what the machine does next.
    fn behaviour(&self) -> impl Hash + PartialEq + '_ {
        let lists = (&self.dirty, &self.kept, &self.pending, &self.waiting, &self.deferred, &self.fresh);
        let pages = (&self.pages, self.found_untouched);
        (&self.options, pages, lists, &self.flushes, &self.order, &self.completed)
    }
}

impl PartialEq for Csm {
    fn eq(&self, other: &Self) -> bool {
        self.behaviour() == other.behaviour()
    }
}

impl Eq for Csm {}

impl Hash for Csm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.behaviour().hash(state);
    }
}

impl Protocol for Csm {
    fn adopt(&mut self, first: Page, count: u32) {
        let common = self.options.common_after == Some(CommonAfter::Touch);
        for page in span(first, count) {
            let entry = self.pages.entry(page);
            assert_eq!(entry.state, State::Untouched, "page {} can't be adopted", page.0);
            entry.state = if common { State::HomeCommon } else { State::HomeExclusive };
        }
        let counted =
            if common { &mut self.counters.became_common } else { &mut self.counters.exclusive_entered };
        *counted += u64::from(count);
    }

    fn fault(
        &mut self,
        page: Page,
        access: Access,
        ahead: u32,
        waiter: Waiter,
        env: &mut dyn Env,
    ) -> Outcome {
        let outcome = self.take_fault(page, access == Access::Write, ahead, waiter, env);
        self.end_call(env);
        outcome
    }

    fn prefetch(&mut self, first: Page, count: u32, access: Access, env: &mut dyn Env) {
        if self.pages.layout().holds(first, 1) {
            let count = self.pages.layout().clip(first, count);
            self.fetch_early(first, count, access == Access::Write, env);
            self.end_call(env);
        }
    }

    fn write_early(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        if self.pages.layout().holds(first, 1) {
            let count = self.pages.layout().clip(first, count);
            for page in span(first, count) {
                self.write_alone(page, first.0 + count - page.0, env);
            }
            self.end_call(env);
        }
    }

    fn withdraw_page(&mut self, page: Page, env: &mut dyn Env) {
        self.withdraw(page, env);
    }

    fn expose_withdrawn(&mut self, env: &mut dyn Env) {
        self.end_call(env);
    }

    fn is_coming(&self, page: Page) -> bool {
        self.pages.layout().holds(page, 1)
            && matches!(self.pages.get(page).state, State::Fetching | State::Deferred)
    }

    fn kinds(&self) -> &'static [&'static str] {
        message::KINDS
    }

    fn release(&mut self, at: SyncPoint, waiter: Waiter, env: &mut dyn Env) -> Outcome {
        let outcome = self.flush(at, waiter, env);
        self.end_call(env);
        outcome
    }

    fn is_released(&self) -> bool {
        self.dirty.is_empty() && self.flushes.is_empty()
    }

    fn is_acquired(&self) -> bool {
        self.pending.is_empty() && self.has_taken_uncommitted()
    }

    fn catch_up(&mut self, env: &mut dyn Env) -> Option<Duration> {
        let next = self.show_and_see(env);
        self.end_call(env);
        next
    }

    fn acquire(&mut self, _at: SyncPoint, env: &mut dyn Env) {
        self.take_posted(env);
        self.invalidate(env);
        self.end_call(env);
    }

    fn message(
        &mut self,
        from: NodeId,
        message: &[u8],
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let message = CsmMessage::decode(message).ok_or(Violation::Unintelligible)?;
        self.handle(from, message, bulk, env)
    }

    fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, used: bool, env: &mut dyn Env) {
        let count = self.pages.layout().clip(first, count);
        self.place_pages(first, count, home, used, env);
        self.end_call(env);
    }

    fn give_placed(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        self.give_untouched(first, count, env);
    }

    fn downgrade_exclusive(&mut self, env: &mut dyn Env) {
        self.stop_first_writers(env);
        self.end_call(env);
    }

    fn home_role(&self, page: Page) -> HomeRole {
        let entry = self.pages.get(page);
        match entry.state {
            State::Untouched if entry.has(PINNED) => HomeRole::Placed(entry.probable_home),
            State::Untouched => HomeRole::Untouched,
            state if state.is_home() => HomeRole::Home,
            _ => HomeRole::Elsewhere,
        }
    }

    fn placed(&self) -> PlacedPages {
        let mut sum = PlacedPages::default();
        for entry in self.pages.entries().filter(|entry| entry.has(PINNED)) {
            match entry.state {
                State::Untouched => sum.untouched += 1,
                _ => sum.home += 1,
            }
        }
        sum
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
