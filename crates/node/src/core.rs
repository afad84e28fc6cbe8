//! The state of a node that one lock guards: the protocol machines and what they act on.

use crate::clock::{Activity, Scope};
use crate::env::{Continuation, NodeEnv, only_peer};
use crate::monitor::Touch;
use crate::thread::Uninterrupted;
use crate::wait_slots::{WaitSlot, event};
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::sync::{
    Answer, BarrierCounters, BarrierEnv, BarrierMessage, Barriers, LockCounters, LockEnv, LockGrant,
    LockMessage, Locks, ManagerOf, Object, Reply, Request, Server, SyncMessage, Ticket,
};
use gondwana_coherence::{Access, HomeRole, Outcome, Page, PlacedPages, Protocol, SyncPoint, Waiter};
use gondwana_prefetch::Prefetch;
use gondwana_topology::NodeId;
use std::time::Duration;

/// Pages of mostly read memory that one message asks for.
const MOST_REPLICATED: u32 = 128;

/// The machines and their environment.
pub(crate) struct Core {
    me: NodeId,
    protocol: Box<dyn Protocol>,
    pub env: NodeEnv,
    manager: ManagerOf,
    locks: Locks,
    barriers: Barriers,
    server: Server,
    pending: PendingContinuations,
    replies: Vec<Reply>,
}

/// What goes on as soon as a release is complete.
#[derive(Clone, Copy)]
enum PendingContinuation {
    /// The token of a mutex leaves.
    Token(Object),
    /// Threads have arrived at a barrier.
    Barrier(Object),
}

/// All such work, by number.
#[derive(Default)]
struct PendingContinuations {
    pending: Vec<Option<PendingContinuation>>,
    free: Vec<u32>,
}

impl PendingContinuations {
    fn add(&mut self, work: PendingContinuation) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() as u32 - 1
        });
        self.pending[number as usize] = Some(work);
        number
    }

    fn take(&mut self, number: u32) -> Option<PendingContinuation> {
        let work = self.pending.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(work)
    }
}

/// The node as the machines of mutexes and barriers see it.
struct SyncEnv<'a> {
    protocol: &'a mut dyn Protocol,
    env: &'a mut NodeEnv,
    pending: &'a mut PendingContinuations,
    manager: &'a ManagerOf,
}

impl SyncEnv<'_> {
    /// Releases what this node wrote before `work` is done; `Wait` if answers must come first.
    fn release_before(&mut self, at: SyncPoint, work: PendingContinuation) -> Outcome {
        let number = self.pending.add(work);
        let outcome = self.protocol.release(at, Continuation::Work(number).into(), self.env);
        if outcome == Outcome::Done {
            self.pending.take(number);
        }
        outcome
    }

    /// Between two nodes what happens at a barrier follows from messages of the one to the other.
    fn at_barrier(&self, barrier: Object) -> SyncPoint {
        SyncPoint { object: Some(barrier), peer: only_peer(self.env.fabric.as_ref()), acquires_next: true }
    }

    fn announce(&mut self, waiter: Waiter, events: u32, result: i64) {
        if let Continuation::Thread(slot) = waiter.into() {
            self.env.slots.announce(slot, events, result);
        }
    }
}

impl LockEnv for SyncEnv<'_> {
    fn send(&mut self, to: NodeId, message: &LockMessage) {
        if let (Some(sink), LockMessage::Token { object }) = (&self.env.sink, message) {
            sink.passes_lock(to, object.0);
        }
        self.env.send_sync(to, SyncMessage::Lock(*message));
    }

    fn pass(&mut self, object: Object, to: NodeId) -> Outcome {
        let at = SyncPoint { object: Some(object), peer: Some(to), ..SyncPoint::default() };
        self.release_before(at, PendingContinuation::Token(object))
    }

    fn arrived(&mut self, object: Object, from: NodeId) {
        self.protocol
            .acquire(SyncPoint { object: Some(object), peer: Some(from), ..SyncPoint::default() }, self.env);
    }

    fn now(&self) -> Duration {
        self.env.began.elapsed()
    }

    /// A thread of the program that receives messages waits itself.
    fn is_active(&self) -> bool {
        Thread::is_service() && Node::current().is_some_and(|node| node.threads.any_runs())
    }

    fn resume(&mut self, waiter: Waiter, grant: LockGrant) {
        let events = match grant {
            LockGrant::Acquired => event::GRANTED,
            LockGrant::Busy => event::BUSY,
        };
        if let (Some(sink), Continuation::Thread(slot)) = (&mut self.env.sink, waiter.into()) {
            sink.grants_lock(self.env.slots.thread(slot));
        }
        self.announce(waiter, events, 0);
    }
}

impl BarrierEnv for SyncEnv<'_> {
    fn manager(&self, barrier: Object) -> NodeId {
        (self.manager)(barrier)
    }

    fn send(&mut self, to: NodeId, message: &BarrierMessage) {
        self.env.send_sync(to, SyncMessage::Barrier(*message));
    }

    fn leave(&mut self, to: NodeId, message: &BarrierMessage) {
        self.env.leave_sync(to, SyncMessage::Barrier(*message));
    }

    fn release(&mut self, barrier: Object) -> Outcome {
        self.release_before(self.at_barrier(barrier), PendingContinuation::Barrier(barrier))
    }

    fn acquire(&mut self, barrier: Object) {
        self.protocol.acquire(self.at_barrier(barrier), self.env);
    }

    fn resume(&mut self, waiter: Waiter, serial: bool) {
        self.announce(waiter, event::PASSED, serial.into());
    }
}

impl Core {
    pub(crate) fn new(
        me: NodeId,
        protocol: Box<dyn Protocol>,
        env: NodeEnv,
        manager: ManagerOf,
        locks: Locks,
        barriers: Barriers,
    ) -> Self {
        let (server, pending, replies) = (Server::new(), PendingContinuations::default(), vec![]);
        Self { me, protocol, env, manager, locks, barriers, server, pending, replies }
    }

    /// What the coherence protocol counted.
    pub(crate) fn counters(&self) -> &gondwana_coherence::Counters {
        self.protocol.counters()
    }

    /// The names of the kinds of messages that the coherence protocol sends.
    pub(crate) fn message_kinds(&self) -> &'static [&'static str] {
        self.protocol.kinds()
    }

    /// What the lock tokens counted.
    pub(crate) fn lock_counters(&self) -> &LockCounters {
        self.locks.counters()
    }

    /// What barriers counted.
    pub(crate) fn barrier_counters(&self) -> &BarrierCounters {
        self.barriers.counters()
    }

    /// A fault of the thread that waits at `slot`. Its earlier faults are over: it has come as far as this one.
    pub(crate) fn fault(
        &mut self,
        page: Page,
        access: Access,
        prefetch: Prefetch,
        slot: WaitSlot,
        touch: Touch,
    ) -> Outcome {
        self.let_go();
        if let Some(sink) = &mut self.env.sink {
            sink.touches(slot, self.env.slots.thread(slot), page, access, touch);
        }
        let is_here = self.env.pages.access(page.0) != Access::None;
        let (adjacent, waiter) = (prefetch.adjacent(), Continuation::Thread(slot).into());
        let outcome = self.protocol.fault(page, access, adjacent, waiter, &mut self.env);
        let array = self.env.pages.geometry().segment_of(page.0);
        let inside = |&(first, count): &(u32, u32)| {
            array.address_of(first).is_some() && array.address_of(first + count - 1).is_some()
        };
        for (first, count) in prefetch.elsewhere(page.0).take_while(inside) {
            if is_here {
                self.protocol.write_early(Page(first), count, &mut self.env);
            } else {
                self.protocol.prefetch(Page(first), count, access, &mut self.env);
            }
        }
        if let Some(sink) = &mut self.env.sink {
            sink.asked();
            if outcome == Outcome::Done {
                sink.resumed(slot);
            }
        }
        self.settle();
        outcome
    }

    /// Asks for pages that threads will read, `wanted` and those right behind it first.
    pub(crate) fn replicate(&mut self, first: Page, count: u32, wanted: Page) {
        let runs = |from: u32, to: u32| {
            (from..to).step_by(MOST_REPLICATED as usize).map(move |run| (run, MOST_REPLICATED.min(to - run)))
        };
        for (run, length) in runs(wanted.0, first.0 + count).chain(runs(first.0, wanted.0)) {
            self.protocol.prefetch(Page(run), length, Access::Read, &mut self.env);
        }
        self.settle();
    }

    /// The homes of pages are to be on a node; see [`Protocol::place`].
    pub(crate) fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, used: bool) {
        self.protocol.place(first, count, home, used, &mut self.env);
    }

    /// Gives pages to their homes that nobody has touched.
    pub(crate) fn give_placed(&mut self, first: Page, count: u32) {
        self.protocol.give_placed(first, count, &mut self.env);
    }

    /// Threads of other nodes are about to use what so far only this node has used.
    pub(crate) fn downgrade_exclusive(&mut self) {
        self.protocol.downgrade_exclusive(&mut self.env);
    }

    /// What this node is to the home of a page, as far as it knows: another one may have become home since it looked last.
    pub(crate) fn home_role(&self, page: Page) -> HomeRole {
        self.protocol.home_role(page)
    }

    /// What this node is to the home of a page.
    pub(crate) fn find_home_role(&mut self, page: Page) -> HomeRole {
        self.protocol.withdraw_page(page, &mut self.env);
        self.protocol.expose_withdrawn(&mut self.env);
        self.protocol.home_role(page)
    }

    /// How many pages that were placed are in this node's charge.
    pub(crate) fn placed(&self) -> PlacedPages {
        self.protocol.placed()
    }

    /// If the program may access a page like that already, makes the kernel's view agree, which may have lost a mapping by
    /// itself. No other node may take the right to write away in between: the kernel's view would give it back.
    pub(crate) fn refresh(&mut self, page: Page, needed: Access) -> bool {
        self.protocol.withdraw_page(page, &mut self.env);
        let permitted = self.env.pages.access(page.0) >= needed;
        if permitted && let Err(error) = self.env.pages.refresh(page.0) {
            crate::fatal(&error.to_string());
        }
        self.protocol.expose_withdrawn(&mut self.env);
        permitted
    }

    /// True if a page is neither resident nor in flight.
    pub(crate) fn is_absent(&self, page: Page) -> bool {
        self.env.pages.access(page.0) == Access::None && !self.protocol.is_coming(page)
    }

    /// A release by the thread that waits at `slot`.
    pub(crate) fn release(&mut self, at: SyncPoint, slot: WaitSlot) -> Outcome {
        let outcome = self.protocol.release(at, Continuation::Thread(slot).into(), &mut self.env);
        self.settle();
        outcome
    }

    /// An acquire by any thread of this node.
    pub(crate) fn acquire(&mut self, at: SyncPoint) {
        self.protocol.acquire(at, &mut self.env);
        self.settle();
    }

    /// A coherence message arrived.
    pub(crate) fn coherence(&mut self, from: NodeId, message: &[u8], bulk: &[u8]) {
        crate::inject::at("message");
        if let Err(violation) = self.protocol.message(from, message, bulk, &mut self.env) {
            crate::fatal(&format!("node {from} broke the coherence protocol: {violation}"));
        }
        self.settle();
    }

    /// True if another node waits for a page that is kept for a thread of this one.
    pub(crate) fn is_wanted(&self) -> bool {
        self.protocol.is_wanted()
    }

    /// Lets go of pages that were kept for threads of this node.
    pub(crate) fn let_go(&mut self) {
        if let Err(violation) = self.protocol.settle(&mut self.env) {
            crate::fatal(&format!("the coherence protocol was broken: {violation}"));
        }
    }

    /// Something about mutex tokens.
    pub(crate) fn with_locks<R>(&mut self, call: impl FnOnce(&mut Locks, &mut dyn LockEnv) -> R) -> R {
        let Self { protocol, env, pending, manager, locks, .. } = self;
        let result = call(locks, &mut SyncEnv { protocol: protocol.as_mut(), env, pending, manager });
        self.settle();
        result
    }

    /// A message about a mutex or a barrier arrived.
    pub(crate) fn synchronise(&mut self, from: NodeId, message: SyncMessage) {
        match message {
            SyncMessage::Lock(message) => self.lock(from, message),
            SyncMessage::Barrier(message) => {
                if let Err(violation) =
                    self.with_barriers(|barriers, env| barriers.message(from, message, env))
                {
                    crate::fatal(&violation.to_string());
                }
            }
        }
    }

    fn lock(&mut self, from: NodeId, message: LockMessage) {
        if let Some(sink) = &mut self.env.sink {
            sink.begins_lock();
        }
        if let Err(violation) = self.with_locks(|locks, env| locks.message(from, message, env)) {
            crate::fatal(&violation.to_string());
        }
        if let (Some(sink), LockMessage::Token { object }) = (&mut self.env.sink, message) {
            sink.takes_lock(from, object.0);
        }
    }

    /// Something about barriers.
    pub(crate) fn with_barriers<R>(
        &mut self,
        call: impl FnOnce(&mut Barriers, &mut dyn BarrierEnv) -> R,
    ) -> R {
        let Self { protocol, env, pending, manager, barriers, .. } = self;
        let result = call(barriers, &mut SyncEnv { protocol: protocol.as_mut(), env, pending, manager });
        self.settle();
        result
    }

    /// A request about an object of this node, from any node.
    pub(crate) fn serve(&mut self, from: NodeId, ticket: Ticket, request: Request) {
        let mut replies = std::mem::take(&mut self.replies);
        self.server.request(from, ticket, request, &mut replies);
        for Reply { to, ticket, answer } in replies.drain(..) {
            self.answer(to, ticket, answer);
        }
        self.replies = replies;
    }

    /// Sends an answer to whoever asked.
    pub(crate) fn answer(&mut self, to: NodeId, ticket: Ticket, answer: Answer) {
        if to == self.me {
            self.announce(ticket, answer);
        } else {
            self.env.post(to, &Wire::Reply { ticket, answer }, &[]);
        }
    }

    /// An answer for a thread of this node.
    pub(crate) fn announce(&mut self, ticket: Ticket, answer: Answer) {
        let (events, result) = match answer {
            Answer::Enqueued => (event::QUEUED, 0),
            Answer::Done(value) => (event::DONE, value),
            Answer::Failed(error) => (event::FAILED, i64::from(error.code())),
            Answer::Cancelled => (event::CANCELLED, 0),
        };
        self.env.slots.announce(WaitSlot(ticket.0 as u32), events, result);
    }

    /// Goes on with what waited for a release.
    fn settle(&mut self) {
        while let Some(number) = self.env.ready.pop() {
            let Self { protocol, env, pending, manager, locks, barriers, .. } = self;
            let Some(work) = pending.take(number) else { continue };
            let mut env = SyncEnv { protocol: protocol.as_mut(), env, pending, manager };
            match work {
                PendingContinuation::Token(mutex) => locks.flushed(mutex, &mut env),
                PendingContinuation::Barrier(barrier) => barriers.flushed(barrier, &mut env),
            }
        }
    }
}

/// The lock on a [`Core`], which signal handlers of the program must not interrupt.
pub(crate) struct CoreGuard<'a> {
    guard: std::mem::ManuallyDrop<std::sync::MutexGuard<'a, Core>>,
    node: &'a Node,
    _time: Scope,
    // Last: handlers that were put off run when it ends, and their time is the program's.
    _uninterrupted: Uninterrupted,
}

impl<'a> CoreGuard<'a> {
    pub(crate) fn new(lock: &'a std::sync::Mutex<Core>, node: &'a Node) -> Self {
        let uninterrupted = Uninterrupted::begin();
        let time = Scope::enter(Activity::Protocol);
        // Not by `gondwana_locks`: a machine that stopped within an event cannot continue.
        let guard = lock.lock().unwrap_or_else(|_| crate::fatal("a protocol machine failed"));
        Self { guard: std::mem::ManuallyDrop::new(guard), node, _time: time, _uninterrupted: uninterrupted }
    }
}

impl std::ops::Deref for CoreGuard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.guard
    }
}

impl std::ops::DerefMut for CoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.guard
    }
}

impl Drop for CoreGuard<'_> {
    fn drop(&mut self) {
        let tokens = self.guard.locks.take_newly_kept();
        let wanted = self.guard.is_wanted() || tokens;
        // SAFETY: dropped here and nowhere else, before the thread may run handlers again.
        unsafe { std::mem::ManuallyDrop::drop(&mut self.guard) };
        if tokens {
            self.node.note_kept_tokens();
        }
        if wanted {
            self.node.let_go_soon();
        }
    }
}
