//! Single-writer release consistency with eager invalidation: each page has one *owner*, whose threads alone may write it.
//!
//! It promises release consistency: a program without data races reads what happens-before says. Other programs may read old
//! values for as long as they do not synchronise.
//!
//! A page's *manager* (fixed, see [`Layout::manager`]) knows the owner and forwards requests to it in the order in which they
//! come. Who asks to write becomes the owner; the manager forwards later requests to it at once, and it puts them off until
//! the page has come. So requests for a page form a queue of owners, and the manager neither waits nor is told.
//!
//! The owner sends copies to readers and remembers them. When it writes a page that has readers, it goes on at once (`Dirty`),
//! and they go on reading their copies. At its next release, or before the page moves to another owner, it has these copies
//! given up and waits for the acknowledgements. An acquire does nothing. A page without readers costs a release nothing.
//!
//! # Why nothing is lost
//!
//! - Copies come from the owner alone, and so do invalidations: an invalidation never overtakes the copy that it is about.
//! - A page moves only when no node but the next owner has a copy, and all invalidations are acknowledged. So the next owner
//!   need not know of earlier readers.
//! - A copy that the next owner has is current, because an owner that has written since it sent copies has all given up.
//! - A release waits for all rounds of invalidations that are under way, also those of other threads and of pages that move:
//!   they may be about its own writes.
//!
//! # Progress
//!
//! As in [`Sc`](crate::Sc), a page that came for threads stays until [`Protocol::settle`], with [`ErcOptions::hold`].

mod message;
mod owner;
mod requester;
mod rounds;
mod state;

pub use message::ErcMessage;
pub use state::ErcState;

use crate::message::{Encoded, Encoder, recode};
use crate::page_table::PageTable;
use crate::registry::{Consistency, PlacedHomes, ProtocolInfo};
use crate::runs::span;
use crate::{
    Access, Counters, Env, Event, HomeRole, Layout, Outcome, Page, PlacedPages, Protocol, SyncPoint,
    Violation, Waiter,
};
use gondwana_topology::{NodeId, NodeSet};
use rounds::Rounds;
use state::{HELD, NOBODY, PageEntry};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// This protocol in [`PROTOCOLS`](crate::PROTOCOLS).
pub(crate) const INFO: ProtocolInfo = ProtocolInfo {
    name: "erc",
    consistency: Consistency::Rc,
    placed: PlacedHomes::Fixed,
    one_sided: false,
    common: false,
    kinds: message::KINDS,
    start: |layout, _options| Box::new(Erc::new(layout, ErcOptions { hold: true })),
    recode: recode::<ErcMessage>,
};

/// What may be tuned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ErcOptions {
    /// Keep pages for the threads that waited for them until [`Protocol::settle`]. Without it the node must see to it by
    /// itself that a resumed thread repeats its access before the next message is handled.
    pub hold: bool,
}

/// What one node knows about one page, for reports and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErcView {
    /// What this node has of the page.
    pub state: ErcState,
    /// At the manager: the owner, if any thread touched the page.
    pub owner: Option<NodeId>,
    /// At the owner: the nodes with copies.
    pub copies: NodeSet,
}

/// A request that this node will serve later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Parked {
    page: Page,
    write: bool,
    requester: NodeId,
}

/// The `erc` protocol on one node.
///
/// Two machines are equal, and hash alike, if they will behave alike: counters don't count.
#[derive(Clone, Debug)]
pub struct Erc {
    options: ErcOptions,
    pages: PageTable<PageEntry, NodeSet>,
    /// Threads that wait for a page.
    waiting: Vec<(Page, Waiter)>,
    /// Pages that became `Dirty` since the last release; may list one that is not any more, or one twice.
    dirty: Vec<Page>,
    rounds: Rounds,
    /// Requests that cannot be served yet, in the order in which they came.
    parked: Vec<Parked>,
    /// Pages that came for threads since the last `settle`.
    held: Vec<Page>,
    counters: Counters,
    encoder: Encoder,
    /// Reused; empty between calls.
    scratch: Vec<Page>,
}

impl Erc {
    /// The machine of node `layout.me()`.
    #[must_use]
    pub fn new(layout: Layout, options: ErcOptions) -> Self {
        Self {
            options,
            pages: PageTable::new(layout),
            waiting: Vec::new(),
            dirty: Vec::new(),
            rounds: Rounds::default(),
            parked: Vec::new(),
            held: Vec::new(),
            counters: Counters::default(),
            encoder: Encoder::default(),
            scratch: Vec::new(),
        }
    }

    /// What this node knows about a page.
    ///
    /// # Panics
    /// If the page is outside the span.
    #[must_use]
    pub fn page(&self, page: Page) -> ErcView {
        assert!(self.pages.layout().holds(page, 1), "page {} is outside the span", page.0);
        let entry = self.pages.get(page);
        ErcView {
            state: entry.state,
            owner: (entry.owner != NOBODY).then_some(entry.owner),
            copies: self.copies(page),
        }
    }

    /// True if no request and no release of this node is in progress and none waits here.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.parked.is_empty() && self.rounds.is_empty()
    }

    /// True if pages are held for threads that were resumed.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn send(&mut self, to: NodeId, message: &ErcMessage, bulk: &[u8], env: &mut dyn Env) {
        self.encoder.with(message, |message| env.send(to, message, bulk));
    }

    fn send_pages(&mut self, to: NodeId, message: &ErcMessage, first: Page, count: u32, env: &mut dyn Env) {
        self.encoder.with(message, |message| env.send_pages(to, message, first, count));
    }

    /// At the manager: hands a request to the owners of its pages.
    fn route(
        &mut self,
        first: Page,
        count: u32,
        write: bool,
        requester: NodeId,
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        const NAME: &str = "Request";
        let (me, end) = (self.pages.me(), first.0 + count);
        let mut next = first;
        while next.0 < end {
            let (first, owner) = (next, self.pages.entry(next).owner);
            if self.pages.layout().manager(first) != me || owner == requester {
                return Err(Violation::Unexpected { message: NAME, page: first });
            }
            let count = self.pages.run(first, end - first.0, |entry| entry.owner == owner);
            next.0 += count;
            if write || owner == NOBODY {
                for page in span(first, count) {
                    self.pages.entry(page).owner = requester;
                }
            }
            if owner == NOBODY {
                env.observe(Event::Served { write }, first, count, requester);
                self.send(requester, &ErcMessage::Untouched { first, count }, &[], env);
            } else if owner == me {
                self.serve(first, count, write, requester, env)?;
            } else {
                self.counters.fetches_forwarded += 1;
                self.send(owner, &ErcMessage::Forward { first, count, write, requester }, &[], env);
            }
        }
        Ok(())
    }

    /// Everything that decides what the machine does next.
    fn behaviour(&self) -> impl Hash + PartialEq + '_ {
        let lists = (&self.waiting, &self.dirty, &self.parked, &self.held);
        (&self.options, &self.pages, &self.rounds, lists)
    }
}

impl PartialEq for Erc {
    fn eq(&self, other: &Self) -> bool {
        self.behaviour() == other.behaviour()
    }
}

impl Eq for Erc {}

impl Hash for Erc {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.behaviour().hash(state);
    }
}

impl Protocol for Erc {
    fn adopt(&mut self, first: Page, count: u32) {
        let me = self.pages.me();
        for page in span(first, count) {
            assert_eq!(self.pages.layout().manager(page), me, "page {} is managed elsewhere", page.0);
            let entry = self.pages.entry(page);
            assert_eq!(entry.owner, NOBODY, "page {} can't be adopted", page.0);
            entry.owner = me;
            entry.state = ErcState::Exclusive;
        }
        self.counters.exclusive_entered += u64::from(count);
    }

    fn fault(
        &mut self,
        page: Page,
        access: Access,
        ahead: u32,
        waiter: Waiter,
        env: &mut dyn Env,
    ) -> Outcome {
        self.take_fault(page, access == Access::Write, ahead.saturating_add(1), waiter, env)
            .expect("this node serves its own requests")
    }

    fn kinds(&self) -> &'static [&'static str] {
        message::KINDS
    }

    fn release(&mut self, _at: SyncPoint, waiter: Waiter, env: &mut dyn Env) -> Outcome {
        self.release_writes(waiter, env)
    }

    fn acquire(&mut self, _at: SyncPoint, _env: &mut dyn Env) {}

    fn message(
        &mut self,
        from: NodeId,
        message: &[u8],
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let message = ErcMessage::decode(message).ok_or(Violation::Unintelligible)?;
        self.pages.check_node("Erc", from)?;
        match message {
            ErcMessage::Request { first, count, write } => {
                self.pages.check(first, count)?;
                self.route(first, count, write, from, env)
            }
            ErcMessage::Forward { first, count, write, requester } => {
                self.pages.check(first, count)?;
                self.pages.check_node("Forward", requester)?;
                self.serve(first, count, write, requester, env)
            }
            ErcMessage::Untouched { first, count } => self.take_untouched(from, first, count, env),
            ErcMessage::Pages { first, count, write } => {
                self.take_pages(from, first, count, write, bulk, env)
            }
            ErcMessage::Invalidate { round, pages } => self.take_invalidation(from, round, &pages, env),
            ErcMessage::InvalidateAck { round } => self.take_ack(round, env),
        }
    }

    fn is_wanted(&self) -> bool {
        self.parked.iter().any(|parked| parked.write && self.pages.get(parked.page).flags.has(HELD))
    }

    fn settle(&mut self, env: &mut dyn Env) -> Result<Option<Duration>, Violation> {
        for page in self.held.drain(..) {
            self.pages.entry(page).flags.take(HELD);
        }
        self.serve_parked(env)?;
        Ok(None)
    }

    fn place(&mut self, _first: Page, _count: u32, _home: Option<NodeId>, _used: bool, _env: &mut dyn Env) {}

    fn give_placed(&mut self, _first: Page, _count: u32, _env: &mut dyn Env) {}

    fn home_role(&self, page: Page) -> HomeRole {
        if self.pages.layout().manager(page) != self.pages.me() {
            HomeRole::Elsewhere
        } else if self.pages.get(page).owner == NOBODY {
            HomeRole::Untouched
        } else {
            HomeRole::Home
        }
    }

    fn placed(&self) -> PlacedPages {
        PlacedPages::default()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
