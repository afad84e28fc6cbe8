//! The protocol engine of one node: the coherence protocol and the machines of synchronisation, and the order in which they
//! work for each other. What a lock token, an arrival or an answer tells another node is released before it leaves and acquired
//! when it comes.
//!
//! An engine has no clock, no network and no threads: a node, a test or a simulator gives it an [`EngineEnv`] with each event.

mod env;
mod pending;
mod sync_env;
mod violation;

pub use env::EngineEnv;
pub use pending::Continuation;
pub use violation::EngineViolation;

use crate::sync::{
    Answer, BarrierCounters, BarrierEnv, Barriers, Initialised, KeeperCounters, KeeperEnv, KeeperMessage,
    Keepers, LockCounters, LockEnv, LockTable, Locks, ManagerOf, Reply, Request, RestingTable, Server,
    SyncMessage, Ticket,
};
use crate::{Layout, Outcome, Protocol, SyncPoint, Violation, Waiter};
use gondwana_topology::NodeId;
use pending::{Pending, PendingWork};
use std::sync::Arc;
use sync_env::SyncEnv;

/// Coherence and synchronisation on one node.
///
/// The node calls these one at a time, under its lock.
pub struct Engine {
    me: NodeId,
    only_peer: Option<NodeId>,
    manager: ManagerOf,
    protocol: Box<dyn Protocol>,
    locks: Locks,
    barriers: Barriers,
    keepers: Keepers,
    server: Server,
    pending: Pending,
    /// Reused lists; empty between calls.
    replies: Vec<Reply>,
    payload: Vec<u8>,
}

impl Engine {
    /// The engine of node `layout.me()`, as is the protocol. Its mutexes share `locks`, and other objects `resting`, with the fast path
    /// of the node's threads; `manager` says which node manages an object.
    #[must_use]
    pub fn new(
        layout: &Layout,
        protocol: Box<dyn Protocol>,
        locks: Arc<LockTable>,
        resting: Arc<RestingTable>,
        manager: ManagerOf,
    ) -> Self {
        let me = layout.me();
        Self {
            me,
            only_peer: layout.only_peer(),
            protocol,
            locks: Locks::new(me, layout.nodes(), locks, Arc::clone(&manager)),
            barriers: Barriers::new(me, layout.nodes()),
            manager,
            keepers: Keepers::new(me, resting),
            server: Server::new(),
            pending: Pending::default(),
            replies: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// The same with mutexes that are common from their first use on, where the node can make any common.
    #[must_use]
    pub fn with_common_mutexes(mut self) -> Self {
        self.locks.make_all_common();
        self
    }

    /// The coherence protocol.
    #[must_use]
    pub fn protocol(&self) -> &dyn Protocol {
        self.protocol.as_ref()
    }

    /// What lock tokens counted.
    #[must_use]
    pub fn lock_counters(&self) -> &LockCounters {
        self.locks.counters()
    }

    /// What barriers counted.
    #[must_use]
    pub fn barrier_counters(&self) -> &BarrierCounters {
        self.barriers.counters()
    }

    /// The barriers, to look at.
    #[must_use]
    pub fn barriers(&self) -> &Barriers {
        &self.barriers
    }

    /// What objects counted that rest where they are used.
    #[must_use]
    pub fn keeper_counters(&self) -> &KeeperCounters {
        self.keepers.counters()
    }

    /// True once if tokens of hot mutexes have begun to stay here: see [`Locks::take_newly_kept`].
    pub fn take_newly_kept(&mut self) -> bool {
        self.locks.take_newly_kept()
    }

    /// Something about pages, such as a fault; then what it lets go on.
    pub fn with_protocol<E: EngineEnv, R>(
        &mut self,
        env: &mut E,
        act: impl FnOnce(&mut dyn Protocol, &mut E) -> R,
    ) -> R {
        let result = act(self.protocol.as_mut(), env);
        self.proceed(env);
        result
    }

    /// Something about mutexes; then what it lets go on.
    pub fn with_locks<E: EngineEnv, R>(
        &mut self,
        env: &mut E,
        act: impl FnOnce(&mut Locks, &mut dyn LockEnv) -> R,
    ) -> R {
        let (Machines { locks, .. }, mut sync) = self.parts(env);
        let result = act(locks, &mut sync);
        self.proceed(env);
        result
    }

    /// Something about barriers; then what it lets go on.
    pub fn with_barriers<E: EngineEnv, R>(
        &mut self,
        env: &mut E,
        act: impl FnOnce(&mut Barriers, &mut dyn BarrierEnv) -> R,
    ) -> R {
        let (Machines { barriers, .. }, mut sync) = self.parts(env);
        let result = act(barriers, &mut sync);
        self.proceed(env);
        result
    }

    /// As [`Keepers::semaphores`].
    #[must_use]
    pub fn semaphores(&self) -> Vec<Initialised> {
        self.keepers.semaphores()
    }

    fn with_keepers<E: EngineEnv, R>(
        &mut self,
        env: &mut E,
        act: impl FnOnce(&mut Keepers, &mut dyn KeeperEnv) -> R,
    ) -> R {
        let (Machines { keepers, .. }, mut sync) = self.parts(env);
        let result = act(keepers, &mut sync);
        self.proceed(env);
        result
    }

    /// Everything that this node wrote becomes visible; see [`Protocol::release`].
    pub fn release<E: EngineEnv>(&mut self, at: SyncPoint, waiter: Waiter, env: &mut E) -> Outcome {
        self.with_protocol(env, |protocol, env| protocol.release(at, waiter, env))
    }

    /// Everything that others released becomes visible; see [`Protocol::acquire`].
    pub fn acquire<E: EngineEnv>(&mut self, at: SyncPoint, env: &mut E) {
        self.with_protocol(env, |protocol, env| protocol.acquire(at, env));
    }

    /// A message of the coherence protocol arrived.
    ///
    /// # Errors
    /// The peer broke the protocol: the run must end.
    pub fn coherence<E: EngineEnv>(
        &mut self,
        from: NodeId,
        message: &[u8],
        bulk: &[u8],
        env: &mut E,
    ) -> Result<(), Violation> {
        self.with_protocol(env, |protocol, env| protocol.message(from, message, bulk, env))
    }

    /// A message about a mutex or a barrier arrived, with what the coherence protocol had it carry.
    ///
    /// # Errors
    /// The peer broke a protocol: the run must end.
    pub fn synchronise<E: EngineEnv>(
        &mut self,
        from: NodeId,
        message: SyncMessage,
        payload: &[u8],
        env: &mut E,
    ) -> Result<(), EngineViolation> {
        self.learn(from, payload, env)?;
        match message {
            SyncMessage::Lock(message) => {
                self.with_locks(env, |locks, sync| locks.message(from, message, sync))?;
            }
            SyncMessage::Barrier(message) => {
                self.with_barriers(env, |barriers, sync| barriers.message(from, message, sync))?;
            }
        }
        Ok(())
    }

    /// A thread of this node requests something of the manager of an object, perhaps this node. What the thread wrote is released.
    pub fn submit<E: EngineEnv>(&mut self, server: NodeId, ticket: Ticket, request: Request, env: &mut E) {
        if let Some(key) = request.key() {
            self.with_keepers(env, |keepers, sync| keepers.request(key, server, ticket, request, sync));
        } else if server == self.me {
            self.serve(self.me, ticket, request, env);
        } else {
            self.publish(server, env, |env, payload| env.send_request(server, ticket, request, payload));
        }
    }

    /// The same where nothing need be released: false if that is not so, and nothing has happened.
    pub fn submit_here<E: EngineEnv>(&mut self, ticket: Ticket, request: &Request, env: &mut E) -> bool {
        request.key().is_some_and(|key| {
            self.with_keepers(env, |keepers, sync| keepers.request_here(key, ticket, request, sync))
        })
    }

    /// A request of another node arrived, with what the coherence protocol had it carry.
    ///
    /// # Errors
    /// The peer broke the coherence protocol: the run must end.
    pub fn requested<E: EngineEnv>(
        &mut self,
        from: NodeId,
        ticket: Ticket,
        request: Request,
        payload: &[u8],
        env: &mut E,
    ) -> Result<(), Violation> {
        self.learn(from, payload, env)?;
        if let Some(key) = request.key() {
            self.with_keepers(env, |keepers, sync| keepers.requested(key, from, ticket, request, sync));
        } else {
            self.serve(from, ticket, request, env);
        }
        Ok(())
    }

    /// A message about an object that does not rest at its manager arrived, with what the coherence protocol had it carry.
    ///
    /// # Errors
    /// The peer broke a protocol: the run must end.
    pub fn keeper<E: EngineEnv>(
        &mut self,
        from: NodeId,
        message: KeeperMessage,
        payload: &[u8],
        env: &mut E,
    ) -> Result<(), EngineViolation> {
        self.learn(from, payload, env)?;
        Ok(self.with_keepers(env, |keepers, sync| keepers.message(from, message, sync))?)
    }

    fn serve<E: EngineEnv>(&mut self, from: NodeId, ticket: Ticket, request: Request, env: &mut E) {
        let mut replies = std::mem::take(&mut self.replies);
        self.server.request(from, ticket, request, &mut replies);
        for Reply { to, ticket, answer } in replies.drain(..) {
            self.answer(to, ticket, answer, env);
        }
        self.replies = replies;
    }

    /// Gives an answer to the node that asked, perhaps this one.
    pub fn answer<E: EngineEnv>(&mut self, to: NodeId, ticket: Ticket, answer: Answer, env: &mut E) {
        if to == self.me {
            env.answered(ticket, answer);
        } else {
            self.publish(to, env, |env, payload| env.send_answer(to, ticket, answer, payload));
        }
    }

    /// An answer for a thread of this node arrived, with what the coherence protocol had it carry.
    ///
    /// # Errors
    /// The peer broke the coherence protocol: the run must end.
    pub fn answered<E: EngineEnv>(
        &mut self,
        from: NodeId,
        ticket: Ticket,
        answer: Answer,
        payload: &[u8],
        env: &mut E,
    ) -> Result<(), Violation> {
        self.learn(from, payload, env)?;
        env.answered(ticket, answer);
        Ok(())
    }

    /// Calls `send` with what the coherence protocol has a message carry by which `to` learns of a release of this node.
    pub fn publish<E: EngineEnv, R>(
        &mut self,
        to: NodeId,
        env: &mut E,
        send: impl FnOnce(&mut E, &[u8]) -> R,
    ) -> R {
        let mut payload = std::mem::take(&mut self.payload);
        self.protocol.publish(to, &mut payload, env);
        let result = send(env, &payload);
        payload.clear();
        self.payload = payload;
        result
    }

    /// What [`Engine::publish`] gave on another node arrived.
    ///
    /// # Errors
    /// The peer broke the coherence protocol: the run must end.
    pub fn learn<E: EngineEnv>(
        &mut self,
        from: NodeId,
        payload: &[u8],
        env: &mut E,
    ) -> Result<(), Violation> {
        if payload.is_empty() {
            return Ok(());
        }
        self.with_protocol(env, |protocol, env| protocol.learn(from, payload, env))
    }

    fn parts<'a, E: EngineEnv>(&'a mut self, env: &'a mut E) -> (Machines<'a>, SyncEnv<'a, E>) {
        let Self { me, only_peer, protocol, manager, locks, barriers, keepers, pending, payload, .. } = self;
        let protocol = protocol.as_mut();
        let sync = SyncEnv { me: *me, peer: *only_peer, protocol, manager, pending, payload, env };
        (Machines { locks, barriers, keepers }, sync)
    }

    /// Goes on with what waited for a release.
    fn proceed<E: EngineEnv>(&mut self, env: &mut E) {
        while let Some(continuation) = env.next_continuation() {
            let Some(work) = self.pending.take(continuation) else { continue };
            let (Machines { locks, barriers, keepers }, mut sync) = self.parts(env);
            match work {
                PendingWork::Token(mutex) => locks.flushed(mutex, &mut sync),
                PendingWork::Barrier(barrier) => barriers.flushed(barrier, &mut sync),
                PendingWork::Kept(key) => keepers.flushed(key, &mut sync),
            }
        }
    }
}

/// The machines of synchronisation that release and acquire.
struct Machines<'a> {
    locks: &'a mut Locks,
    barriers: &'a mut Barriers,
    keepers: &'a mut Keepers,
}
