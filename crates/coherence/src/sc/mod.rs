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
//! # Progress
//!
//! A page can be taken away again before the thread that waited for it repeated its access. Nodes that fight for a
//! page could go on like that for ever. With [`ScOptions::hold`] the machine keeps a page that threads were resumed
//! for until the node calls [`Sc::settle`]; requests wait so long. The node must do that a moment (some
//! microseconds) after those threads went on; [`Sc::is_wanted`] tells whether anybody is waiting for it.

mod copies;
mod manager;
mod place;
mod state;

pub use state::ScState;

use crate::runs::span;
use crate::slab::Slab;
use crate::table::Table;
use crate::{
    Access, Counters, Env, Layout, Message, Outcome, Page, PlacedPages, Protocol, ScMessage, Standing,
    Violation, Waiter,
};
use gondwana_topology::{NodeId, NodeSet};
use state::{ASKED, GIVE, HELD, Managed, NOBODY, PINNED, PageEntry};
use std::hash::{Hash, Hasher};

/// What may be tuned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScOptions {
    /// Keep pages for the threads that waited for them until [`Sc::settle`]. Without it the node must see to it
    /// by itself that a resumed thread repeats its access before the next message is handled.
    pub hold: bool,
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
    layout: Layout,
    options: ScOptions,
    table: Table<PageEntry>,
    managed: Slab<Managed>,
    /// Threads that wait for a page.
    waiting: Vec<(Page, Waiter)>,
    /// Pages that came for threads since the last `settle`.
    held: Vec<Page>,
    /// Messages that would take a held page away.
    parked: Vec<(NodeId, ScMessage)>,
    /// Pages managed here whose next request would take a held page away.
    stalled: Vec<Page>,
    counters: Counters,
}

impl Sc {
    /// The machine of node `layout.me()`.
    #[must_use]
    pub fn new(layout: Layout, options: ScOptions) -> Self {
        Self {
            table: Table::new(layout.pages()),
            layout,
            options,
            managed: Slab::default(),
            waiting: Vec::new(),
            held: Vec::new(),
            parked: Vec::new(),
            stalled: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Says that `count` pages from `first`, which this node manages, have contents before the program starts, with
    /// write access already in force. To be called before anything else happens to these pages.
    ///
    /// # Panics
    /// If a page is not managed here or was touched before.
    pub fn adopt(&mut self, first: Page, count: u32) {
        for page in span(first, count) {
            assert_eq!(self.layout.manager(page), self.me(), "page {} is managed elsewhere", page.0);
            assert_eq!(self.entry(page).owner, NOBODY, "page {} can't be adopted", page.0);
            self.own(page);
        }
        self.counters.exclusive_entered += u64::from(count);
    }

    /// What this node knows about a page.
    ///
    /// # Panics
    /// If the page is outside the span.
    #[must_use]
    pub fn page(&self, page: Page) -> ScView {
        assert!(self.layout.holds(page, 1), "page {} is outside the span", page.0);
        let entry = self.known(page);
        ScView {
            state: entry.state,
            manager: if entry.is_manager(self.me()) { self.me() } else { entry.manager },
            owner: (entry.owner != NOBODY).then_some(entry.owner),
            copies: self.managed.get(entry.record).map_or(NodeSet::EMPTY, |managed| managed.copies),
        }
    }

    /// True if no request of this node is in progress and none waits here.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && !self.is_wanted()
    }

    /// True if pages are held for threads that were resumed.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// True if another node waits for a page that is held here.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.parked.is_empty() || !self.stalled.is_empty()
    }

    /// Ends the hold on all pages and serves who waited for them.
    ///
    /// # Errors
    /// As [`Protocol::message`], for a message that was put off.
    pub fn settle(&mut self, env: &mut dyn Env) -> Result<(), Violation> {
        for page in std::mem::take(&mut self.held) {
            self.entry(page).take(HELD);
        }
        for (from, message) in std::mem::take(&mut self.parked) {
            self.handle(from, message, &[], env)?;
        }
        for page in std::mem::take(&mut self.stalled) {
            self.serve_next(page, env);
        }
        Ok(())
    }

    fn me(&self) -> NodeId {
        self.layout.me()
    }

    fn entry(&mut self, page: Page) -> &mut PageEntry {
        let layout = &self.layout;
        self.table.entry(page, |page| PageEntry::fresh(layout, page))
    }

    /// A page's entry, to look at.
    fn known(&self, page: Page) -> PageEntry {
        self.table.get(page).copied().unwrap_or_else(|| PageEntry::fresh(&self.layout, page))
    }

    /// Makes this node, the manager, owner of a page that nobody touched.
    fn own(&mut self, page: Page) {
        let me = self.me();
        let entry = self.entry(page);
        entry.owner = me;
        entry.state = ScState::Write;
    }

    /// How many pages from `first` on, at most `most`, satisfy `like`.
    fn run(&mut self, first: Page, most: u32, like: impl Fn(&PageEntry) -> bool) -> u32 {
        let most = self.layout.clip(first, most);
        (0..most).take_while(|ahead| like(self.entry(Page(first.0 + ahead)))).count() as u32
    }

    fn check(&self, first: Page, count: u32) -> Result<(), Violation> {
        if self.layout.holds(first, count) { Ok(()) } else { Err(Violation::OutsideSpan { first, count }) }
    }

    fn check_node(&self, message: &'static str, node: NodeId) -> Result<(), Violation> {
        if node == self.me() || node.0 >= self.layout.nodes() {
            return Err(Violation::Node { message, node: node.0 });
        }
        Ok(())
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
        let entry = *self.entry(page);
        let enough = if write { entry.state == ScState::Write } else { entry.state != ScState::None };
        if enough {
            return Outcome::Done;
        }
        if !entry.has(ASKED) {
            self.ask(page, ahead.saturating_add(1), write, env);
            if !self.entry(page).has(ASKED) {
                return Outcome::Done;
            }
        }
        if entry.state == ScState::None && !self.waiting.iter().any(|(awaited, _)| *awaited == page) {
            self.counters.awaited += 1;
        }
        self.waiting.push((page, waiter));
        Outcome::Wait
    }

    fn ask(&mut self, first: Page, most: u32, write: bool, env: &mut dyn Env) {
        self.give_first(first, most, env);
        let manager = self.manager(first);
        let me = self.me();
        let mut asked = 1;
        if manager == me && self.entry(first).owner == NOBODY {
            self.touch_first(first, most, env);
            return;
        }
        if manager != me && self.entry(first).state == ScState::None {
            asked += self.run(Page(first.0 + 1), most - 1, |entry| {
                entry.manager == manager
                    && entry.state == ScState::None
                    && !entry.has(ASKED)
                    && !entry.has(GIVE)
            });
        }
        for page in span(first, asked) {
            self.entry(page).set(ASKED);
        }
        if manager == me {
            self.enqueue(first, state::Request { requester: me, write, asked }, env);
        } else {
            self.counters.fetches += 1;
            let message = ScMessage::Request { first, count: asked, write, requester: me };
            env.send(manager, &Message::Sc(message), &[]);
        }
    }

    fn touch_first(&mut self, first: Page, most: u32, env: &mut dyn Env) {
        let count = self.untouched(first, most);
        for page in span(first, count) {
            self.own(page);
        }
        self.counters.first_touches += u64::from(count);
        self.counters.exclusive_entered += u64::from(count);
        env.protect(first, count, Access::Write);
    }

    /// How many pages from the untouched page `first` on, at most `most`, are like it.
    fn untouched(&mut self, first: Page, most: u32) -> u32 {
        let (me, like) = (self.me(), *self.entry(first));
        self.run(first, most, |entry| {
            entry.owner == NOBODY && entry.manager == me && (entry.flags ^ like.flags) & (PINNED | GIVE) == 0
        })
    }

    /// Ends the request for a page and resumes the threads that wait for it. If `arrived`, the page is theirs for a
    /// moment.
    fn resume(&mut self, page: Page, arrived: bool, env: &mut dyn Env) {
        self.entry(page).take(ASKED);
        let before = self.waiting.len();
        self.waiting.retain(|&(awaited, waiter)| {
            if awaited == page {
                env.resume(waiter);
            }
            awaited != page
        });
        if arrived && self.options.hold && self.waiting.len() < before {
            self.entry(page).set(HELD);
            self.held.push(page);
        }
    }

    fn handle(
        &mut self,
        from: NodeId,
        message: ScMessage,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        match message {
            ScMessage::Request { first, count, write, requester } => {
                self.take_request(first, state::Request { requester, write, asked: count }, env)
            }
            ScMessage::Forward { .. } | ScMessage::Invalidate { .. } => self.give_up(from, message, env),
            ScMessage::Pages { first, asked, served, write, manager, untouched, acks } => {
                let pages = copies::Pages { first, asked, served, write, manager, untouched, acks };
                self.take_pages(from, &pages, bulk, env)
            }
            ScMessage::InvalidateAck { page } => self.take_ack(page, env),
            ScMessage::Confirm { page } => self.take_confirm(from, page, env),
            ScMessage::Place { first, count, home } => self.take_place(first, count, home, env),
            ScMessage::Manage { first, count, owner } => self.take_manage(first, count, owner),
        }
    }

    /// Everything that decides what the machine does next.
    fn behaviour(&self) -> impl Hash + PartialEq + '_ {
        let lists = (&self.waiting, &self.held, &self.parked, &self.stalled);
        (&self.layout, &self.options, &self.table, &self.managed, lists)
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

    fn release(&mut self, _waiter: Waiter, _env: &mut dyn Env) -> Outcome {
        Outcome::Done
    }

    fn acquire(&mut self, _env: &mut dyn Env) {}

    fn message(
        &mut self,
        from: NodeId,
        message: Message,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let Message::Sc(message) = message else { return Err(Violation::OtherProtocol) };
        self.check_node("Sc", from)?;
        self.handle(from, message, bulk, env)
    }

    fn is_wanted(&self) -> bool {
        Self::is_wanted(self)
    }

    fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, _used: bool, env: &mut dyn Env) {
        let count = self.layout.clip(first, count);
        self.place_pages(first, count, home, env);
    }

    fn give_placed(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        for page in span(first, count) {
            self.give_first(page, first.0 + count - page.0, env);
        }
    }

    fn standing(&self, page: Page) -> Standing {
        let entry = self.known(page);
        if !entry.is_manager(self.me()) {
            Standing::Elsewhere
        } else if entry.owner == NOBODY && entry.has(PINNED) {
            Standing::Placed(entry.manager)
        } else if entry.owner == NOBODY {
            Standing::Untouched
        } else {
            Standing::Home
        }
    }

    fn placed(&self) -> PlacedPages {
        let mut sum = PlacedPages::default();
        for entry in self.table.entries().filter(|entry| entry.has(PINNED)) {
            match entry.owner {
                NOBODY => sum.untouched += 1,
                _ => sum.home += 1,
            }
        }
        sum
    }

    fn settle(&mut self, env: &mut dyn Env) -> Result<(), Violation> {
        Self::settle(self, env)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
