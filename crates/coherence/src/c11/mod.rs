//! Release consistency for programs that synchronise by atomic instructions, too: right for every program that is free of data races in
//! the sense of C11, as far as the node says which pages its threads synchronise on.
//!
//! Most pages are *ordinary*: [`Csm`] sees to them. A page on which a thread executes an atomic instruction, or waits for what another one
//! writes, becomes a *synchronisation page* ([`Protocol::promote`], `promotion.rs`) and stays one: [`Sc`] sees to it, so that one
//! node writes it or many read it.
//!
//! Like the token of a mutex, a synchronisation page carries happens-before from node to node:
//!
//! - *A page that this node could write leaves it, or is copied:* threads are kept from writing it first; then all that the node has
//!   written on ordinary pages is released; then the contents are sent. So what a thread wrote before a store to the page, in its
//!   program's order, is released before another node can read that store. A page that this node could only read says nothing of it.
//! - *The contents arrive:* the node acquires before its threads can use them.
//!
//! While a node owns a page its threads synchronise there as natively, and nothing is sent.
//!
//! Messages about synchronisation pages leave in the order in which they were made. Those that must wait for a release hold up those behind them.
//!
//! What is not seen are plain loads and stores by which threads synchronise on ordinary pages.

mod message;
mod promotion;

pub use message::C11Message;

use crate::message::{Encoded, Encoder, recode};
use crate::registry::{Consistency, PlacedHomes, ProtocolInfo, StartOptions};
use crate::runs::leading;
use crate::sc::Letter;
use crate::slices::Slices;
use crate::table::Table;
use crate::{
    Access, Counters, Csm, CsmMessage, CsmOptions, Env, HomeRole, Layout, Outcome, Page, PlacedPages,
    Protocol, Sc, ScMessage, ScOptions, SyncPoint, Violation, Waiter,
};
use gondwana_topology::NodeId;
use promotion::Promotion;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// This protocol in [`PROTOCOLS`](crate::PROTOCOLS).
pub(crate) const INFO: ProtocolInfo = ProtocolInfo {
    name: "c11",
    consistency: Consistency::C11,
    placed: PlacedHomes::MoveWithWriter,
    one_sided: true,
    common: false,
    kinds: message::KINDS,
    start: |layout, options| {
        let StartOptions { one_sided, .. } = *options;
        // Where nodes read each other's memory, they read what is not released as well.
        let csm = CsmOptions { one_sided, ordered: !one_sided, ..CsmOptions::default() };
        Box::new(C11::new(layout, C11Options { csm, sc: crate::sc::OPTIONS }))
    },
    recode: recode::<C11Message>,
};

/// What may be tuned. No page becomes common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct C11Options {
    /// About ordinary pages.
    pub csm: CsmOptions,
    /// About synchronisation pages.
    pub sc: ScOptions,
}

/// Which machine sees to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// [`Csm`].
    Ordinary,
    /// None: threads of this node are kept from it until it is a synchronisation page.
    Leaving,
    /// [`Sc`].
    Synchronisation,
}

/// A message that waits for a release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Delayed {
    letter: Letter,
    /// The flush with which the release is complete.
    flush: u64,
}

/// A thread that waits for a page to become a synchronisation page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kept {
    page: Page,
    waiter: Waiter,
    /// How it accessed the page; `None` if it only wants to know.
    access: Option<Access>,
}

/// The `c11` protocol on one node.
///
/// Two machines are equal, and hash alike, if they will behave alike: counters don't count.
#[derive(Clone, Debug)]
pub struct C11 {
    layout: Layout,
    csm: Csm,
    sc: Sc,
    kinds: Table<PageKind>,
    /// How much more often an ordinary page was released because of synchronisation pages than by calls, as far as that counts.
    released: Table<u8>,
    /// Threads that wait for a page to become a synchronisation page.
    kept: Vec<Kept>,
    /// In the order in which they are to be sent.
    delayed: VecDeque<Delayed>,
    /// Pages that are leaving this node, and the flush with which what it has written is released.
    leaving: Vec<(Page, u64)>,
    /// Pages managed here that are leaving all nodes.
    promotions: Vec<Promotion>,
    promoted: u64,
    encoder: Encoder,
}

impl C11 {
    /// The machine of node `layout.me()`.
    #[must_use]
    pub fn new(layout: Layout, options: C11Options) -> Self {
        let csm = CsmOptions { common_after: None, ..options.csm };
        let sc = ScOptions { common_after: None, ..options.sc };
        Self {
            csm: Csm::as_part(layout.clone(), csm, message::CSM),
            sc: Sc::as_part(layout.clone(), sc),
            kinds: Table::new(layout.pages()),
            released: Table::new(layout.pages()),
            layout,
            kept: Vec::new(),
            delayed: VecDeque::new(),
            leaving: Vec::new(),
            promotions: Vec::new(),
            promoted: 0,
            encoder: Encoder::default(),
        }
    }

    /// Which machine sees to a page here.
    #[must_use]
    pub fn kind(&self, page: Page) -> PageKind {
        self.kinds.get(page).copied().unwrap_or(PageKind::Ordinary)
    }

    /// The machine of ordinary pages.
    #[must_use]
    pub fn ordinary(&self) -> &Csm {
        &self.csm
    }

    /// The machine of synchronisation pages.
    #[must_use]
    pub fn synchronisation(&self) -> &Sc {
        &self.sc
    }

    /// True if nothing of this node is in progress.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let empty = self.kept.is_empty() && self.delayed.is_empty();
        let settled = self.leaving.is_empty() && self.promotions.is_empty();
        empty && settled && self.csm.is_quiet() && self.sc.is_quiet()
    }

    fn set_kind(&mut self, page: Page, kind: PageKind) {
        *self.kinds.entry(page, |_| PageKind::Ordinary) = kind;
    }

    /// How many pages from `first` on, at most `most`, are of this kind, as `first` is.
    fn alike(&self, first: Page, most: u32, kind: PageKind) -> u32 {
        leading(first, self.layout.clip(first, most), |page| self.kind(page) == kind)
    }

    /// Something about ordinary pages; then what waits for a release that it completes.
    fn with_csm<R>(&mut self, env: &mut dyn Env, act: impl FnOnce(&mut Csm, &mut dyn Env) -> R) -> R {
        let result = act(&mut self.csm, env);
        self.proceed(env);
        result
    }

    /// Something about synchronisation pages; then the messages of that.
    fn with_sc<R>(&mut self, env: &mut dyn Env, act: impl FnOnce(&mut Sc, &mut dyn Env) -> R) -> R {
        let result = act(&mut self.sc, env);
        let mut outgoing = self.sc.take_outgoing();
        let at = SyncPoint { peer: self.layout.only_peer(), ..SyncPoint::default() };
        let worn = if outgoing.written { self.note_released(true) } else { vec![] };
        let flush = if outgoing.written { self.csm.begin_release(at, env) } else { None };
        for letter in outgoing.letters.drain(..) {
            match flush {
                None if self.delayed.is_empty() => self.send_letter(letter, env),
                _ => self.delayed.push_back(Delayed { letter, flush: flush.unwrap_or(0) }),
            }
        }
        self.sc.reuse(outgoing.letters);
        for page in worn {
            self.ask_for_promotion(page, env);
        }
        result
    }

    /// Sends what has waited for releases that are complete.
    fn proceed(&mut self, env: &mut dyn Env) {
        self.go_on_leaving(env);
        let completed = self.csm.completed();
        while let Some(Delayed { letter, .. }) = self.delayed.pop_front_if(|next| next.flush <= completed) {
            self.send_letter(letter, env);
        }
    }

    fn send_letter(&mut self, letter: Letter, env: &mut dyn Env) {
        let Letter { to, message, pages } = letter;
        self.encoder.with(&C11Message::Sc(message), |message| match pages {
            None => env.send(to, message, &[]),
            Some((first, count)) => env.send_pages(to, message, first, count),
        });
    }

    fn send(&mut self, to: NodeId, message: &C11Message, env: &mut dyn Env) {
        self.encoder.with(message, |message| env.send(to, message, &[]));
    }

    fn take_sc(
        &mut self,
        from: NodeId,
        message: ScMessage,
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        let (first, count) = message.pages();
        if self.alike(first, count, PageKind::Synchronisation) != count {
            return Err(Violation::Unexpected { message: "Sc", page: first });
        }
        if !bulk.is_empty() {
            let at = SyncPoint { peer: Some(from), ..SyncPoint::default() };
            self.with_csm(env, |csm, env| csm.acquire(at, env));
        }
        self.with_sc(env, |sc, env| sc.handle(from, message, bulk, env))
    }

    /// Everything that decides what the machine does next.
    fn behaviour(&self) -> impl Hash + PartialEq + '_ {
        let lists = (&self.kept, &self.delayed, &self.leaving, &self.promotions);
        (&self.csm, &self.sc, &self.kinds, &self.released, lists)
    }
}

impl PartialEq for C11 {
    fn eq(&self, other: &Self) -> bool {
        self.behaviour() == other.behaviour()
    }
}

impl Eq for C11 {}

impl Hash for C11 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.behaviour().hash(state);
    }
}

impl Protocol for C11 {
    fn adopt(&mut self, first: Page, count: u32) {
        self.csm.adopt(first, count);
    }

    fn fault(
        &mut self,
        page: Page,
        access: Access,
        ahead: u32,
        waiter: Waiter,
        env: &mut dyn Env,
    ) -> Outcome {
        match self.kind(page) {
            PageKind::Ordinary => self.with_csm(env, |csm, env| csm.fault(page, access, ahead, waiter, env)),
            PageKind::Leaving => {
                self.kept.push(Kept { page, waiter, access: Some(access) });
                Outcome::Wait
            }
            PageKind::Synchronisation => {
                let ahead = self.alike(Page(page.0 + 1), ahead, PageKind::Synchronisation);
                self.with_sc(env, |sc, env| sc.fault(page, access, ahead, waiter, env))
            }
        }
    }

    fn promote(&mut self, page: Page, waiter: Waiter, env: &mut dyn Env) -> Outcome {
        if self.kind(page) == PageKind::Synchronisation {
            return Outcome::Done;
        }
        let is_known = self.kept.iter().any(|kept| kept.page == page && kept.access.is_none());
        self.kept.push(Kept { page, waiter, access: None });
        if !is_known && self.kind(page) == PageKind::Ordinary {
            self.ask_for_promotion(page, env);
        }
        Outcome::Wait
    }

    fn prefetch(&mut self, first: Page, count: u32, access: Access, env: &mut dyn Env) {
        let end = first.0.saturating_add(self.layout.clip(first, count));
        let mut next = first;
        while next.0 < end {
            let kind = self.kind(next);
            let count = self.alike(next, end - next.0, kind);
            match kind {
                PageKind::Ordinary => {
                    self.with_csm(env, |csm, env| csm.prefetch(next, count, access, env));
                }
                PageKind::Leaving => (),
                PageKind::Synchronisation => {
                    self.with_sc(env, |sc, env| sc.prefetch(next, count, access, env));
                }
            }
            next.0 += count;
        }
    }

    fn write_early(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        self.with_csm(env, |csm, env| csm.write_early(first, count, env));
    }

    fn withdraw_page(&mut self, page: Page, env: &mut dyn Env) {
        self.csm.withdraw_page(page, env);
    }

    fn expose_withdrawn(&mut self, env: &mut dyn Env) {
        self.csm.expose_withdrawn(env);
    }

    fn is_coming(&self, page: Page) -> bool {
        self.csm.is_coming(page)
    }

    fn release(&mut self, at: SyncPoint, waiter: Waiter, env: &mut dyn Env) -> Outcome {
        self.note_released(false);
        self.with_csm(env, |csm, env| csm.release(at, waiter, env))
    }

    fn is_released(&self) -> bool {
        self.csm.is_released()
    }

    fn is_acquired(&self) -> bool {
        self.csm.is_acquired()
    }

    fn acquire(&mut self, at: SyncPoint, env: &mut dyn Env) {
        self.with_csm(env, |csm, env| csm.acquire(at, env));
    }

    fn kinds(&self) -> &'static [&'static str] {
        message::KINDS
    }

    fn message(
        &mut self,
        from: NodeId,
        message: &[u8],
        bulk: &[u8],
        env: &mut dyn Env,
    ) -> Result<(), Violation> {
        if from == self.layout.me() || from.0 >= self.layout.nodes() {
            return Err(Violation::Node { message: "C11", node: from.0 });
        }
        match C11Message::decode(message).ok_or(Violation::Unintelligible)? {
            C11Message::Csm(CsmMessage::Placed { first, count }) => {
                self.take_placed(from, first, count, bulk, env)
            }
            C11Message::Csm(message) => self.with_csm(env, |csm, env| csm.handle(from, message, bulk, env)),
            C11Message::Sc(message) => self.take_sc(from, message, bulk, env),
            C11Message::Promote { page } => self.take_promote(page, env),
            C11Message::Quit { page } => self.take_quit(from, page, env),
            C11Message::Left { page, home } => self.take_left(from, page, home, env),
            C11Message::Promoted { page, owner } => self.take_promoted(from, page, owner, env),
        }
    }

    fn is_wanted(&self) -> bool {
        self.sc.is_wanted()
    }

    fn put_off(&self) -> u64 {
        self.sc.put_off()
    }

    fn repeats(&mut self, page: Page, env: &mut dyn Env) {
        self.sc.repeats(page, env);
    }

    fn settle(&mut self, env: &mut dyn Env) -> Result<Option<Duration>, Violation> {
        self.with_sc(env, |sc, env| sc.settle(env))
    }

    fn catch_up(&mut self, env: &mut dyn Env) -> Option<Duration> {
        self.with_csm(env, |csm, env| csm.catch_up(env))
    }

    fn slices(&mut self) -> Option<&mut Slices> {
        self.sc.slices()
    }

    fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, used: bool, env: &mut dyn Env) {
        self.with_csm(env, |csm, env| csm.place(first, count, home, used, env));
    }

    fn give_placed(&mut self, first: Page, count: u32, env: &mut dyn Env) {
        self.with_csm(env, |csm, env| csm.give_placed(first, count, env));
    }

    fn downgrade_exclusive(&mut self, env: &mut dyn Env) {
        self.with_csm(env, |csm, env| csm.downgrade_exclusive(env));
    }

    fn home_role(&self, page: Page) -> HomeRole {
        match self.kind(page) {
            PageKind::Synchronisation => self.sc.home_role(page),
            _ => self.csm.home_role(page),
        }
    }

    fn placed(&self) -> PlacedPages {
        self.csm.placed()
    }

    fn counters(&self) -> Counters {
        let own = Counters { promoted: self.promoted, ..Counters::default() };
        self.csm.counters() + self.sc.counters() + own
    }
}
