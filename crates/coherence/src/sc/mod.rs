//! One writer or many readers for each page: right for every program, with or without locks (Li and Hudak's Ivy,
//! with a fixed manager for each page, unless a policy decides it: see `place.rs`).
//!
//! The page's manager handles one request for a page at a time. It knows the owner and the nodes with copies. A
//! read request is passed to the owner, which gives up write access and sends a copy. A write request makes all
//! copies invalid, and the owner sends the page and gives it up; the requester writes when every invalidation is
//! acknowledged to it, and becomes owner. Then it confirms to the manager, which takes the next request. So there
//! never is a copy anywhere while a node may write, and every read returns the last write.
//!
//! Where the manager itself can answer at once (nobody touched the page, or it owns the page and a copy is wanted)
//! nothing needs to be confirmed: whatever it sends later arrives later.
//!
//! A message is about a run of pages: a request names those that the thread will probably touch next, and the manager serves the
//! first part of them that is with the same nodes and that nobody else asks for. The rest is asked for again when it is touched.
//!
//! # Common pages
//!
//! Where the hardware can keep memory of nodes coherent, a page that they take from each other again and again becomes *common*: see
//! `common.rs`.
//!
//! # Progress
//!
//! A page can be taken away again before the thread that waited for it repeated its access. Nodes that fight for a
//! page could go on like that for ever. With [`ScOptions::hold`] the machine keeps pages for a while (see `hold.rs`); requests
//! wait so long. [`Sc::is_wanted`] tells whether any does, and the node must then call [`Sc::settle`], which says when to call it
//! again.

mod asking;
mod common;
mod copies;
mod hold;
mod manager;
mod message;
mod outgoing;
mod place;
mod state;
mod turns;

pub use message::ScMessage;
pub(crate) use outgoing::{Letter, Outgoing};
pub use state::ScState;

use crate::message::{Encoded, Encoder, recode};
use crate::page_table::PageTable;
use crate::registry::{CommonAfter, Consistency, PlacedHomes, ProtocolInfo};
use crate::runs::span;
use crate::slices::{Slices, Turn};
use crate::{
    Access, Counters, Env, HomeRole, Layout, Outcome, Page, PlacedPages, Protocol, SyncPoint, Violation,
    Waiter,
};
use gondwana_topology::{NodeId, NodeSet};
use hold::Holds;
use state::{ASKED, KEPT, Managed, NOBODY, PINNED, PageEntry};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// This protocol in [`PROTOCOLS`](crate::PROTOCOLS).
pub(crate) const INFO: ProtocolInfo = ProtocolInfo {
    name: "sc",
    consistency: Consistency::Sc,
    placed: PlacedHomes::HandedOver,
    one_sided: false,
    common: true,
    kinds: message::KINDS,
    start: |layout, options| {
        Box::new(Sc::new(layout, ScOptions { common_after: options.common_after, ..OPTIONS }))
    },
    recode: recode::<ScMessage>,
};

/// What nodes have tuned, but for common pages.
pub(crate) const OPTIONS: ScOptions =
    ScOptions { hold: Some(HOLD), slice_pages: SLICE_PAGES, common_after: None };

/// How long a page stays for a thread that waited for it and goes on.
const HOLD: Duration = Duration::from_micros(8);

/// As [`ScOptions::slice_pages`].
const SLICE_PAGES: u32 = 8;

/// Most pages with contents, or with copies elsewhere, that one answer brings.
const MOST_SERVED: u32 = 128;

/// What may be tuned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScOptions {
    /// For how long at least pages stay for the threads that waited for them. With zero they stay until [`Sc::settle`] while
    /// the clock stands still. Without it the node must see to it by itself that a resumed thread repeats its access
    /// before the next message is handled.
    pub hold: Option<Duration>,
    /// Slices are for so many pages and tokens at least: nodes that pass a page to and fro, as for a flag or a lock, need it at once.
    pub slice_pages: u32,
    /// As [`StartOptions::common_after`](crate::StartOptions::common_after).
    pub common_after: Option<CommonAfter>,
}

/// What one node knows about one page, for reports and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScView {
    /// What this node has of the page.
    pub state: ScState,
    /// The node that a request would be sent to; this one if it is the manager.
    pub manager: NodeId,
    /// At the manager: the owner, if anybody touched the page.
    pub owner: Option<NodeId>,
    /// At the manager: the nodes with copies, without the owner.
    pub copies: NodeSet,
}

/// The `sc` protocol on one node.
///
/// Two machines are equal, and hash alike, if they will behave alike: counters don't count.
#[derive(Clone, Debug)]
pub struct Sc {
    pages: PageTable<PageEntry, Managed>,
    /// Threads that wait for a page, and since when.
    waiting: Vec<(Page, Waiter, Duration)>,
    /// `None` as soon as a policy decides about pages of this node.
    common_after: Option<CommonAfter>,
    /// How long pages stay.
    holds: Holds,
    /// Messages that would take away a page that stays.
    parked: Vec<(NodeId, ScMessage)>,
    /// Pages managed here whose next request would take away a page that stays.
    stalled: Vec<Page>,
    /// How many of both there have been so far.
    put_off: u64,
    counters: Counters,
    encoder: Encoder,
    /// What the machine sends of which this one is part, if it is one; empty between its calls.
    outgoing: Option<Outgoing>,
    /// Reused; empty between calls.
    scratch: Vec<Page>,
}

impl Sc {
    /// The machine of node `layout.me()`.
    #[must_use]
    pub fn new(layout: Layout, options: ScOptions) -> Self {
        Self {
            pages: PageTable::new(layout),
            waiting: Vec::new(),
            common_after: options.common_after,
            holds: Holds::new(options),
            parked: Vec::new(),
            stalled: Vec::new(),
            put_off: 0,
            counters: Counters::default(),
            encoder: Encoder::default(),
            outgoing: None,
            scratch: Vec::new(),
        }
    }

    /// What this node knows about a page.
    ///
    /// # Panics
    /// If the page is outside the span.
    #[must_use]
    pub fn page(&self, page: Page) -> ScView {
        assert!(self.pages.layout().holds(page, 1), "page {} is outside the span", page.0);
        let entry = self.pages.get(page);
        ScView {
            state: entry.state,
            manager: if entry.is_manager(self.pages.me()) { self.pages.me() } else { entry.manager },
            owner: (entry.owner != NOBODY).then_some(entry.owner),
            copies: self.pages.known(entry).map_or(NodeSet::EMPTY, |managed| managed.copies),
        }
    }

    /// True if no request of this node is in progress and none waits here.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && !self.is_wanted()
    }

    /// True if pages stay for threads that were resumed.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.holds.any_arrived()
    }

    /// True if another node waits for a page that stays here.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.parked.is_empty() || !self.stalled.is_empty()
    }

    /// Serves those who wait for pages that need not stay any longer. Returns in what time the next of them is due.
    ///
    /// # Errors
    /// As [`Protocol::message`], for a message that was put off.
    pub fn settle(&mut self, env: &mut dyn Env) -> Result<Option<Duration>, Violation> {
        self.holds.end_due(env.now());
        let put_off = self.put_off;
        for (from, message) in std::mem::take(&mut self.parked) {
            self.give_up(from, message, true, env)?;
        }
        for page in std::mem::take(&mut self.stalled) {
            self.serve_next(page, env);
        }
        self.put_off = put_off;
        let me = self.pages.me();
        let parked = self.parked.iter().filter_map(|(_, message)| message.taken());
        let parked = parked.map(|(first, _, turn)| (first, turn));
        let stalled = self.stalled.iter().filter_map(|&page| {
            let managed = self.pages.known(self.pages.get(page))?;
            Some((page, managed.queue.front()?.turn()))
        });
        let now = env.now();
        // A page may have become free to leave just now.
        let end = |(page, turn)| self.holds.end(page, turn, me, env).unwrap_or(now);
        Ok(parked.chain(stalled).map(end).min().map(|end| end.saturating_sub(now)))
    }

    fn send(&mut self, to: NodeId, message: &ScMessage, env: &mut dyn Env) {
        match &mut self.outgoing {
            Some(outgoing) => outgoing.add(to, message, None),
            None => self.encoder.with(message, |message| env.send(to, message, &[])),
        }
    }

    fn send_pages(&mut self, to: NodeId, message: &ScMessage, first: Page, count: u32, env: &mut dyn Env) {
        match &mut self.outgoing {
            Some(outgoing) => outgoing.add(to, message, Some((first, count))),
            None => self.encoder.with(message, |message| env.send_pages(to, message, first, count)),
        }
    }

    /// Makes this node, the manager, owner of a page that nobody touched.
    fn own(&mut self, page: Page) {
        let me = self.pages.me();
        let entry = self.pages.entry(page);
        entry.owner = me;
        entry.state = ScState::Write;
    }

    fn take_fault(
        &mut self,
        page: Page,
        write: bool,
        ahead: u32,
        waiter: Waiter,
        env: &mut dyn Env,
    ) -> Outcome {
        if write {
            self.counters.write_faults += 1;
        } else {
            self.counters.read_faults += 1;
        }
        let entry = *self.pages.entry(page);
        let enough = match entry.state {
            ScState::None => false,
            ScState::Read | ScState::Owner => !write,
            ScState::Write | ScState::Common => true,
        };
        if enough {
            return Outcome::Done;
        }
        if !entry.has(ASKED) {
            self.ask(page, ahead.saturating_add(1), write, env);
            if !self.pages.entry(page).has(ASKED) {
                return Outcome::Done;
            }
            self.ask_around(page, env);
        }
        if entry.state == ScState::None && !self.waiting.iter().any(|(awaited, ..)| *awaited == page) {
            self.counters.awaited += 1;
        }
        self.waiting.push((page, waiter, env.now()));
        Outcome::Wait
    }

    /// Ends the request for a page and resumes the threads that wait for it. If `arrived`, the page is theirs for a
    /// moment. True if any has waited.
    fn resume(&mut self, page: Page, arrived: bool, env: &mut dyn Env) -> bool {
        let entry = self.pages.entry(page);
        entry.take(ASKED);
        let kept = entry.take(KEPT);
        let mut since = None;
        self.waiting.retain(|&(awaited, waiter, asked)| {
            if awaited == page {
                env.resume(waiter);
                since.get_or_insert(asked);
            }
            awaited != page
        });
        if let Some(asked) = since.filter(|_| arrived) {
            self.holds.came(page, asked, kept, env.now());
        }
        since.is_some()
    }

    pub(crate) fn handle(
        &mut self,
        from: NodeId,
        message: ScMessage,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        match message {
            ScMessage::Request { first, count, write, requester, slice } => {
                let request = state::Request { requester, slice, write, asked: count, kept: false };
                self.take_request(from, first, request, env)
            }
            ScMessage::Forward { .. } | ScMessage::Invalidate { .. } => {
                self.give_up(from, message, false, env)
            }
            ScMessage::Pages { first, asked, served, write, manager, untouched, acks, kept } => {
                let pages = copies::Pages { first, asked, served, write, manager, untouched, acks, kept };
                self.take_pages(from, &pages, bulk, env)
            }
            ScMessage::Common { first, asked, served, manager } => {
                self.take_common(from, first, (asked, served), manager, env)
            }
            ScMessage::Touched { first, count } => self.take_touched(from, first, count, env),
            ScMessage::Hurry { first, requester, slice } => {
                self.take_hurry(first, Turn { slice, node: requester }, env)
            }
            ScMessage::InvalidateAck { first, count, kept } => self.take_ack(first, count, kept, env),
            ScMessage::Confirm { first, count } => self.take_confirm(from, first, count, env),
            ScMessage::Place { first, count, home } => self.take_place(first, count, home, env),
            ScMessage::Manage { first, count, owner } => self.take_manage(first, count, owner),
        }
    }

    /// Everything that decides what the machine does next.
    fn behaviour(&self) -> impl Hash + PartialEq + '_ {
        let lists = (&self.waiting, &self.parked, &self.stalled);
        (lists, self.holds.behaviour(), &self.pages, self.common_after)
    }
}

impl PartialEq for Sc {
    fn eq(&self, other: &Self) -> bool {
        self.behaviour() == other.behaviour()
    }
}

impl Eq for Sc {}

impl Hash for Sc {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.behaviour().hash(state);
    }
}

impl Protocol for Sc {
    fn adopt(&mut self, first: Page, count: u32) {
        let common = self.common_after == Some(CommonAfter::Touch);
        for page in span(first, count) {
            assert_eq!(
                self.pages.layout().manager(page),
                self.pages.me(),
                "page {} is managed elsewhere",
                page.0
            );
            assert_eq!(self.pages.entry(page).owner, NOBODY, "page {} can't be adopted", page.0);
            self.own(page);
            if common {
                self.pages.entry(page).state = ScState::Common;
            }
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
        self.take_fault(page, access == Access::Write, ahead, waiter, env)
    }

    fn prefetch(&mut self, first: Page, count: u32, access: Access, env: &mut dyn Env) {
        self.ask_ahead(first, count, access == Access::Write, |state| state == ScState::None, env);
    }

    fn write_early(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        let copy = |state| matches!(state, ScState::Read | ScState::Owner);
        self.ask_ahead(first, count, true, copy, env);
    }

    fn kinds(&self) -> &'static [&'static str] {
        message::KINDS
    }

    fn release(&mut self, _at: SyncPoint, _waiter: Waiter, _env: &mut dyn Env) -> Outcome {
        Outcome::Done
    }

    fn acquire(&mut self, _at: SyncPoint, _env: &mut dyn Env) {}

    fn message(
        &mut self,
        from: NodeId,
        message: &[u8],
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let message = ScMessage::decode(message).ok_or(Violation::Unintelligible)?;
        self.pages.check_node("Sc", from)?;
        self.handle(from, message, bulk, env)
    }

    fn is_wanted(&self) -> bool {
        Self::is_wanted(self)
    }

    fn put_off(&self) -> u64 {
        self.put_off
    }

    fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, _used: bool, env: &mut dyn Env) {
        let count = self.pages.layout().clip(first, count);
        self.place_pages(first, count, home, env);
    }

    fn give_placed(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            self.give_first(page, first.0 + count - page.0, env);
        }
    }

    fn home_role(&self, page: Page) -> HomeRole {
        let entry = self.pages.get(page);
        if !entry.is_manager(self.pages.me()) {
            HomeRole::Elsewhere
        } else if entry.owner == NOBODY && entry.has(PINNED) {
            HomeRole::Placed(entry.manager)
        } else if entry.owner == NOBODY {
            HomeRole::Untouched
        } else {
            HomeRole::Home
        }
    }

    fn placed(&self) -> PlacedPages {
        let mut sum = PlacedPages::default();
        for entry in self.pages.entries().filter(|entry| entry.has(PINNED)) {
            match entry.owner {
                NOBODY => sum.untouched += 1,
                _ => sum.home += 1,
            }
        }
        sum
    }

    fn repeats(&mut self, page: Page, env: &mut dyn Env) {
        self.holds.repeats(page, env.now());
    }

    fn settle(&mut self, env: &mut dyn Env) -> Result<Option<Duration>, Violation> {
        Self::settle(self, env)
    }

    fn slices(&mut self) -> Option<&mut Slices> {
        Some(self.holds.slices())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
