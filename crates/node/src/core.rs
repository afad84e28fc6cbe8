//! The state of a node that one lock guards: its protocol engine and what that acts on.

use crate::Node;
use crate::clock::{Activity, Scope};
use crate::env::{NodeEnv, waiter_of};
use crate::monitor::Touch;
use crate::thread::Uninterrupted;
use crate::wait_slots::WaitSlot;
use crate::wire::Wire;
use gondwana_coherence::sync::{
    Answer, BarrierCounters, BarrierEnv, Barriers, Initialised, KeeperCounters, KeeperMessage, LockCounters,
    LockEnv, LockMessage, Locks, Request, SyncMessage, Ticket,
};
use gondwana_coherence::{
    Access, Engine, EngineEnv, EngineViolation, HomeRole, Outcome, Page, PlacedPages, SyncPoint,
};
use gondwana_fabric::Gathering;
use gondwana_prefetch::Prefetch;
use gondwana_topology::NodeId;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pages of mostly read memory that one message asks for.
const MOST_REPLICATED: u32 = 128;

/// The engine and its environment.
pub(crate) struct Core {
    engine: Engine,
    pub env: NodeEnv,
}

/// A peer that breaks a protocol ends the run: the memory can't be trusted any more.
fn must_be_right(from: NodeId, result: Result<(), impl Into<EngineViolation>>) {
    if let Err(violation) = result {
        crate::fatal(&match violation.into() {
            EngineViolation::Coherence(violation) => {
                format!("node {from} broke the coherence protocol: {violation}")
            }
            violation => violation.to_string(),
        });
    }
}

impl Core {
    pub(crate) fn new(engine: Engine, env: NodeEnv) -> Self {
        Self { engine, env }
    }

    /// What the coherence protocol counted.
    pub(crate) fn counters(&self) -> gondwana_coherence::Counters {
        self.engine.protocol().counters()
    }

    /// The names of the kinds of messages that the coherence protocol sends.
    pub(crate) fn message_kinds(&self) -> &'static [&'static str] {
        self.engine.protocol().kinds()
    }

    /// What the lock tokens counted.
    pub(crate) fn lock_counters(&self) -> &LockCounters {
        self.engine.lock_counters()
    }

    /// What objects counted that rest where they are used.
    pub(crate) fn keeper_counters(&self) -> &KeeperCounters {
        self.engine.keeper_counters()
    }

    /// What barriers counted.
    pub(crate) fn barrier_counters(&self) -> &BarrierCounters {
        self.engine.barrier_counters()
    }

    /// A fault of the thread that waits at `slot`. Its earlier faults are over: it has come as far as this one.
    /// The semaphores whose state is here; see [`Engine::semaphores`].
    pub(crate) fn semaphores(&self) -> Vec<Initialised> {
        self.engine.semaphores()
    }

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
        self.engine.with_protocol(&mut self.env, |protocol, env| {
            let outcome = protocol.fault(page, access, prefetch.adjacent(), waiter_of(slot), env);
            let array = env.pages.geometry().segment_of(page.0);
            let inside = |&(first, count): &(u32, u32)| {
                array.address_of(first).is_some() && array.address_of(first + count - 1).is_some()
            };
            for (first, count) in prefetch.elsewhere(page.0).take_while(inside) {
                if is_here {
                    protocol.write_early(Page(first), count, env);
                } else {
                    protocol.prefetch(Page(first), count, access, env);
                }
            }
            if let Some(sink) = &mut env.sink {
                sink.asked();
                if outcome == Outcome::Done {
                    sink.resumed(slot);
                }
            }
            outcome
        })
    }

    /// Asks for pages that threads will read, `wanted` and those right behind it first.
    pub(crate) fn replicate(&mut self, first: Page, count: u32, wanted: Page) {
        let runs = |from: u32, to: u32| {
            (from..to).step_by(MOST_REPLICATED as usize).map(move |run| (run, MOST_REPLICATED.min(to - run)))
        };
        self.engine.with_protocol(&mut self.env, |protocol, env| {
            for (run, length) in runs(wanted.0, first.0 + count).chain(runs(first.0, wanted.0)) {
                protocol.prefetch(Page(run), length, Access::Read, env);
            }
        });
    }

    /// The homes of pages are to be on a node; see [`Protocol::place`](gondwana_coherence::Protocol::place).
    pub(crate) fn place(&mut self, first: Page, count: u32, home: Option<NodeId>, used: bool) {
        self.engine
            .with_protocol(&mut self.env, |protocol, env| protocol.place(first, count, home, used, env));
    }

    /// Gives pages to their homes that nobody has touched.
    pub(crate) fn give_placed(&mut self, first: Page, count: u32) {
        self.engine.with_protocol(&mut self.env, |protocol, env| protocol.give_placed(first, count, env));
    }

    /// Threads of other nodes are about to use what so far only this node has used.
    pub(crate) fn downgrade_exclusive(&mut self) {
        self.engine.with_protocol(&mut self.env, |protocol, env| protocol.downgrade_exclusive(env));
    }

    /// What this node is to the home of a page, as far as it knows: another one may have become home since it looked last.
    pub(crate) fn home_role(&self, page: Page) -> HomeRole {
        self.engine.protocol().home_role(page)
    }

    /// Does something to a page that no other node may copy meanwhile.
    fn while_withdrawn<R>(&mut self, page: Page, act: impl FnOnce(&mut NodeEnv) -> R) -> R {
        self.engine.with_protocol(&mut self.env, |protocol, env| {
            protocol.withdraw_page(page, env);
            let result = act(env);
            protocol.expose_withdrawn(env);
            result
        })
    }

    /// What this node is to the home of a page.
    pub(crate) fn find_home_role(&mut self, page: Page) -> HomeRole {
        self.while_withdrawn(page, |_| ());
        self.home_role(page)
    }

    /// How many pages that were placed are in this node's charge.
    pub(crate) fn placed(&self) -> PlacedPages {
        self.engine.protocol().placed()
    }

    /// If the program may access a page like that already, makes the kernel's view agree, which may have lost a mapping by
    /// itself. No other node may take the right to write away in between: the kernel's view would give it back.
    pub(crate) fn refresh(&mut self, page: Page, needed: Access) -> bool {
        self.while_withdrawn(page, |env| {
            let permitted = env.pages.access(page.0) >= needed;
            if permitted && let Err(error) = env.pages.refresh(page.0) {
                crate::fatal(&error.to_string());
            }
            permitted
        })
    }

    /// True if a page is neither resident nor in flight.
    pub(crate) fn is_absent(&self, page: Page) -> bool {
        self.env.pages.access(page.0) == Access::None && !self.engine.protocol().is_coming(page)
    }

    /// The thread that waits at `slot` is about to synchronise on a page.
    pub(crate) fn promote(&mut self, page: Page, slot: WaitSlot) -> Outcome {
        self.engine.with_protocol(&mut self.env, |protocol, env| protocol.promote(page, waiter_of(slot), env))
    }

    /// A release by the thread that waits at `slot`.
    pub(crate) fn release(&mut self, at: SyncPoint, slot: WaitSlot) -> Outcome {
        self.engine.release(at, waiter_of(slot), &mut self.env)
    }

    /// An acquire by any thread of this node.
    pub(crate) fn acquire(&mut self, at: SyncPoint) {
        self.engine.acquire(at, &mut self.env);
    }

    /// Sends a message by which its receiver learns of a release.
    pub(crate) fn publish(&mut self, to: NodeId, wire: &Wire) {
        self.engine.publish(to, &mut self.env, |env, payload| env.post(to, wire, payload));
    }

    /// What came with such a message.
    pub(crate) fn learn(&mut self, from: NodeId, payload: &[u8]) {
        must_be_right(from, self.engine.learn(from, payload, &mut self.env));
    }

    /// A coherence message arrived.
    pub(crate) fn coherence(&mut self, from: NodeId, message: &[u8], bulk: &[u8]) {
        crate::inject::at("message");
        must_be_right(from, self.engine.coherence(from, message, bulk, &mut self.env));
    }

    /// The calling thread waited for a page and goes on.
    pub(crate) fn repeats(&mut self, page: Page) {
        self.engine.with_protocol(&mut self.env, |protocol, env| protocol.repeats(page, env));
    }

    /// Lets go of pages that need not stay for threads of this node any longer. Returns in what time to do so again.
    pub(crate) fn let_go(&mut self) -> Option<Duration> {
        let settled = self.engine.with_protocol(&mut self.env, |protocol, env| protocol.settle(env));
        settled.unwrap_or_else(|violation| {
            crate::fatal(&format!("the coherence protocol was broken: {violation}"));
        })
    }

    /// Catches up with what other nodes have done, and lets them. Returns in what time to do so again; `None`: never.
    pub(crate) fn catch_up(&mut self) -> Option<Duration> {
        self.engine.with_protocol(&mut self.env, |protocol, env| protocol.catch_up(env))
    }

    /// Something about mutex tokens.
    pub(crate) fn with_locks<R>(&mut self, call: impl FnOnce(&mut Locks, &mut dyn LockEnv) -> R) -> R {
        self.engine.with_locks(&mut self.env, call)
    }

    /// Something about barriers.
    pub(crate) fn with_barriers<R>(
        &mut self,
        call: impl FnOnce(&mut Barriers, &mut dyn BarrierEnv) -> R,
    ) -> R {
        self.engine.with_barriers(&mut self.env, call)
    }

    /// A message about a mutex or a barrier arrived.
    pub(crate) fn synchronise(&mut self, from: NodeId, message: SyncMessage, payload: &[u8]) {
        if let (Some(sink), SyncMessage::Lock(_)) = (&mut self.env.sink, message) {
            sink.begins_lock();
        }
        must_be_right(from, self.engine.synchronise(from, message, payload, &mut self.env));
        if let (Some(sink), SyncMessage::Lock(LockMessage::Token { object, .. })) =
            (&mut self.env.sink, message)
        {
            sink.takes_lock(from, object.0);
        }
    }

    /// A thread of this node requests something of the manager of an object, perhaps this node.
    pub(crate) fn submit(&mut self, server: NodeId, ticket: Ticket, request: Request) {
        self.engine.submit(server, ticket, request, &mut self.env);
    }

    /// The same where no release is needed; otherwise false.
    pub(crate) fn submit_here(&mut self, ticket: Ticket, request: &Request) -> bool {
        self.engine.submit_here(ticket, request, &mut self.env)
    }

    /// A message about an object that does not rest at its manager arrived.
    pub(crate) fn keeper(&mut self, from: NodeId, message: KeeperMessage, payload: &[u8]) {
        must_be_right(from, self.engine.keeper(from, message, payload, &mut self.env));
    }

    /// A request of another node arrived.
    pub(crate) fn requested(&mut self, from: NodeId, ticket: Ticket, request: Request, payload: &[u8]) {
        must_be_right(from, self.engine.requested(from, ticket, request, payload, &mut self.env));
    }

    /// Gives an answer to the node that asked.
    pub(crate) fn answer(&mut self, to: NodeId, ticket: Ticket, answer: Answer) {
        self.engine.answer(to, ticket, answer, &mut self.env);
    }

    /// The answer to a request of this node arrived.
    pub(crate) fn answered(&mut self, from: NodeId, ticket: Ticket, answer: Answer, payload: &[u8]) {
        must_be_right(from, self.engine.answered(from, ticket, answer, payload, &mut self.env));
    }

    /// A thread of this node has its answer.
    pub(crate) fn announce(&mut self, ticket: Ticket, answer: Answer) {
        self.env.answered(ticket, answer);
    }

    /// The barriers at which threads of this node wait, at most `most`, each with its count.
    pub(crate) fn awaited_barriers(&self, most: usize) -> Vec<AwaitedBarrier> {
        let barriers = self.engine.barriers().awaited().take(most);
        barriers.map(|(barrier, count)| (barrier.0, count)).collect()
    }

    /// True once if tokens of hot mutexes have begun to stay here.
    fn take_newly_kept(&mut self) -> bool {
        self.engine.take_newly_kept()
    }
}

/// A barrier and how many threads have come to it.
pub(crate) type AwaitedBarrier = (u64, u32);

/// Not by `gondwana_locks`: a machine that stopped within an event cannot continue.
fn stopped() -> ! {
    crate::fatal("a protocol machine failed")
}

/// The lock on a [`Core`], which signal handlers of the program must not interrupt.
pub(crate) struct CoreGuard<'a> {
    guard: std::mem::ManuallyDrop<std::sync::MutexGuard<'a, Core>>,
    node: &'a Node,
    gathering: Gathering,
    _time: Scope,
    // Last: handlers that were put off run when it ends, and their time is the program's.
    uninterrupted: Uninterrupted,
}

impl<'a> CoreGuard<'a> {
    /// As [`CoreGuard::new`] if nobody else has the lock.
    pub(crate) fn try_new(lock: &'a std::sync::Mutex<Core>, node: &'a Node) -> Option<Self> {
        Self::with(node, || match lock.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => stopped(),
        })
    }

    pub(crate) fn new(lock: &'a std::sync::Mutex<Core>, node: &'a Node) -> Self {
        let take = || Some(lock.lock().unwrap_or_else(|_| stopped()));
        Self::with(node, take).expect("it waits for the lock")
    }

    #[inline(always)]
    fn with(node: &'a Node, take: impl FnOnce() -> Option<std::sync::MutexGuard<'a, Core>>) -> Option<Self> {
        let uninterrupted = Uninterrupted::begin();
        let time = Scope::enter(Activity::Protocol);
        let gathering = node.fabric.begin_gathering();
        let guard = std::mem::ManuallyDrop::new(take()?);
        // Before this node acknowledges anything that threads have to acquire.
        node.sync.acquired.store(false, Ordering::Relaxed);
        Some(Self { guard, node, gathering, _time: time, uninterrupted })
    }
}

impl CoreGuard<'_> {
    /// In a child of a fork, whose parent has the machines: nothing is told to anybody, and handlers may run.
    pub(crate) fn leave_to_parent(self) {
        let guard = std::mem::ManuallyDrop::new(self);
        // SAFETY: it is read once, and not dropped elsewhere.
        drop(unsafe { std::ptr::read(&raw const guard.uninterrupted) });
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
        let tokens = self.guard.take_newly_kept();
        let protocol = self.guard.engine.protocol();
        let wanted = self.node.service.note_wanted(protocol.is_wanted(), protocol.put_off());
        self.node.sync.released.store(protocol.is_released(), Ordering::Release);
        self.node.sync.acquired.store(protocol.is_acquired(), Ordering::Release);
        let wakes = self.guard.env.take_wakes();
        // SAFETY: dropped here and nowhere else, before the thread may run handlers again.
        unsafe { std::mem::ManuallyDrop::drop(&mut self.guard) };
        // What the machines have sent leaves together, and other threads need not wait for that.
        self.node.fabric.end_gathering(std::mem::take(&mut self.gathering));
        wakes.wake(self.node.fabric.as_ref(), &self.node.waiting.slots);
        if tokens {
            self.node.note_kept_tokens();
        }
        if wanted {
            self.node.let_go_soon();
        }
    }
}
