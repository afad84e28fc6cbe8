//! Mutexes as tokens: the node that has a mutex's token passes the mutex among its threads without a message; another
//! node asks the manager, which forwards the request to the last node that asked (the distributed queue of TreadMarks).

mod ahead;
mod attempts;
mod common;
mod env;
mod hot;
#[cfg(test)]
mod limits;
mod line;
mod queue;
mod staying;

use super::entry::Word;
use super::{Entry, LockMessage, LockTable, LockViolation, Object, SyncError, Thread};
use crate::slices::{Slices, Turn};
use crate::{Outcome, Waiter};
use ahead::Walks;
use common::{COMMON_AFTER, send_common};
pub use env::{LockEnv, LockGrant};
use gondwana_topology::NodeId;
pub(super) use hot::HOT;
use hot::HotMutexes;
#[cfg(test)]
pub(super) use limits::Limits;
use line::Lines;
use queue::{Queues, Waiting};
use serde::{Deserialize, Serialize};
pub use staying::KEPT_USES;
use std::sync::Arc;
use std::time::Duration;

/// How often a mutex changes hands within a node while another node waits for it. More saves messages, fewer is
/// fairer.
pub const LOCAL_HANDOVERS: u32 = 8;

/// Which node manages an object: the same answer on every node.
pub type ManagerOf = Arc<dyn Fn(Object) -> NodeId + Send + Sync>;

/// What became of a trylock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum TryOutcome {
    /// The thread holds the mutex.
    Acquired,
    /// `EBUSY`.
    Busy,
    /// Another node must be asked: the waiter is resumed with the answer.
    Wait,
}

/// What tokens did on this node so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LockCounters {
    /// Tokens asked of other nodes.
    pub requests: u64,
    /// Those of them that no thread waited for yet.
    pub early: u64,
    /// Tokens that came.
    pub tokens_received: u64,
    /// Tokens that left.
    pub tokens_sent: u64,
    /// Mutexes handed from one thread of this node to another that waited.
    pub handovers: u64,
    /// Uses of hot mutexes for which tokens stayed although another node waited.
    pub kept: u64,
    /// Mutexes that this node has made common.
    pub common: u64,
}

/// The slow path of mutexes on one node: a distributed queue of nodes for each token (the lock algorithm of
/// TreadMarks), and a queue of threads within the node.
///
/// The manager of a mutex knows the node that asked for the token last, the *tail*. A request makes the
/// requester the tail and is forwarded to the tail before, which passes the token on when it is done. A node asks
/// only while it neither has the token nor awaits it, so it never has more than one successor.
///
/// A token that another node waits for leaves when its holder unlocks, except that of a *hot* mutex, which threads here want back
/// soon each time: that stays until they have used it [`KEPT_USES`] times, or until [`Locks::let_go`] or [`Locks::let_go_due`].
/// Nodes that fight for many tokens take turns with all of them: see `slices.rs`.
///
/// The node calls these one at a time, under its lock.
pub struct Locks {
    me: NodeId,
    table: Arc<LockTable>,
    manager: ManagerOf,
    local_handovers: u32,
    kept_uses: u32,
    common_after: u32,
    queues: Queues,
    hot: HotMutexes,
    walks: Walks,
    /// Where pages have none.
    slices: Slices,
    /// The mutexes whose tokens stay until [`Locks::let_go`]; may list one that has left.
    kept: Vec<Object>,
    /// Some were added since [`Locks::take_newly_kept`].
    newly_kept: bool,
    /// How many nodes share what time there is.
    nodes: u32,
    /// Of the mutexes that this node manages.
    lines: Lines,
    /// Trylocks that could not be decided at once, so far.
    attempts: u64,
    counters: LockCounters,
}

impl Locks {
    /// The machine of node `me` among `nodes`, sharing `table` with the fast path of its threads.
    #[must_use]
    pub fn new(me: NodeId, nodes: u16, table: Arc<LockTable>, manager: ManagerOf) -> Self {
        Self {
            me,
            nodes: nodes.into(),
            table,
            manager,
            local_handovers: LOCAL_HANDOVERS,
            kept_uses: KEPT_USES,
            common_after: COMMON_AFTER,
            queues: Queues::default(),
            hot: HotMutexes::new(HOT),
            walks: Walks::default(),
            slices: Slices::new(staying::SLICES),
            kept: Vec::new(),
            newly_kept: false,
            lines: Lines::new(me),
            attempts: 0,
            counters: LockCounters::default(),
        }
    }

    /// Mutexes are common from their first use on, as far as that is possible: no token leaves its manager.
    pub(crate) fn make_all_common(&mut self) {
        self.common_after = 0;
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &LockCounters {
        &self.counters
    }

    /// `pthread_mutex_lock` after [`Entry::fast_lock`] said `Slow`. `Done`: the thread holds the mutex; `Wait`:
    /// the waiter is resumed with [`LockGrant::Acquired`] once it does.
    pub fn lock(&mut self, object: Object, thread: Thread, waiter: Waiter, env: &mut dyn LockEnv) -> Outcome {
        self.settle(object, env);
        let entry = self.table.entry(object);
        loop {
            match entry.word() {
                Word::Free if entry.lock_at_hand(thread) => return Outcome::Done,
                Word::FreeQueued => {
                    self.use_kept(object, thread);
                    return Outcome::Done;
                }
                Word::Common => {
                    env.resume(waiter, LockGrant::Common);
                    return Outcome::Wait;
                }
                // It saves asking. An answer that is on its way says the same to those who wait for it.
                Word::Absent if env.is_common(object) => entry.set(Word::Common),
                // The holder's fast path raced with this one: look again.
                Word::Free => continue,
                Word::Held if !entry.transition(Word::Held, Word::HeldQueued) => continue,
                _ => break,
            }
        }
        let queue = self.queues.of(object);
        queue.waiting.push_back(Waiting { waiter, thread, attempt: None });
        if entry.word() == Word::Absent {
            let now = env.now();
            if !std::mem::replace(&mut queue.requested, true) {
                self.hot.wanted(object, now);
                self.request(object, None, now, env);
            }
            self.ask_ahead(object, thread, now, env);
        }
        Outcome::Wait
    }

    /// `pthread_mutex_unlock` after [`Entry::fast_unlock`] said `Slow`: the mutex goes to the first waiting
    /// thread of this node, or to the node that waits for the token, or becomes free.
    ///
    /// # Errors
    /// [`SyncError::NotOwner`]: no thread of this node holds the mutex.
    pub fn unlock(&mut self, object: Object, env: &mut dyn LockEnv) -> Result<(), SyncError> {
        let entry = self.table.entry(object);
        if !entry.is_locked() {
            return Err(SyncError::NotOwner);
        }
        entry.disown();
        let queue = self.queues.of(object);
        match queue.next {
            Some(_) if queue.waiting.is_empty() && queue.uses_left > 0 => {
                entry.set(Word::FreeQueued);
                self.begin_to_hold(object, env);
            }
            Some(next)
                if queue.waiting.is_empty()
                    || queue.handovers >= self.local_handovers && !queue.stays_for_slice() =>
            {
                queue.next = None;
                entry.set(Word::Leaving);
                self.leave(object, next.node, env);
            }
            _ => self.counters.handovers += u64::from(self.hand_over(object, env)),
        }
        Ok(())
    }

    /// Takes a waiter out of the queue (a timed lock whose time is over): true if it was still there, false if
    /// it is being resumed or was never queued. The token may come all the same, and rests here.
    pub fn cancel(&mut self, object: Object, waiter: Waiter) -> bool {
        let Some(queue) = self.queues.get_mut(object) else { return false };
        let before = queue.waiting.len();
        queue.waiting.retain(|waiting| waiting.waiter != waiter);
        queue.waiting.len() != before
    }

    /// The release that [`LockEnv::pass`] began is complete: the token leaves.
    pub fn flushed(&mut self, object: Object, env: &mut dyn LockEnv) {
        let Some(queue) = self.queues.get_mut(object) else { return };
        if let Some((to, common)) = queue.leaving.take() {
            self.pass_on(object, to, common, env);
        }
    }

    /// `pthread_mutex_init` and `pthread_mutex_destroy`: a mutex that was left locked here is free again. Costs
    /// no message.
    pub fn reset(&mut self, object: Object, env: &mut dyn LockEnv) {
        if self.table.get(object).is_some_and(Entry::is_locked) {
            // A mutex found locked a moment ago may be free by now; then there is nothing to do.
            let _ = self.unlock(object, env);
        }
    }

    /// A message arrived.
    ///
    /// # Errors
    /// The peer broke the protocol: the run must end.
    pub fn message(
        &mut self,
        from: NodeId,
        message: LockMessage,
        env: &mut dyn LockEnv,
    ) -> Result<(), LockViolation> {
        let permitted = match message {
            LockMessage::Request { object, attempt, slice } => {
                self.enqueue(object, Turn { slice, node: from }, attempt, env)
            }
            LockMessage::Pass { object, next, attempt } => {
                from == (self.manager)(object) && self.succeed(object, next, attempt, env)
            }
            LockMessage::Token { object, common: true, .. } => self.learn_common(object, from, env),
            LockMessage::Token { object, kept, .. } => self.token(object, from, kept, env),
            LockMessage::Ask { object, to, attempt } => {
                let permitted = from == (self.manager)(object) && to != self.me;
                if permitted {
                    self.asked(object, to, attempt, env);
                }
                permitted
            }
            LockMessage::AskBefore { object, to, attempt } => {
                let permitted = (self.manager)(object) == self.me;
                if permitted {
                    self.ask_on(object, from, to, attempt, env);
                }
                permitted
            }
            LockMessage::Busy { object, attempt } => self.busy(object, attempt, env),
        };
        if permitted { Ok(()) } else { Err(LockViolation { from, message }) }
    }

    /// Asks for the token, as the queue says already.
    fn request(&mut self, object: Object, attempt: Option<u64>, now: Duration, env: &mut dyn LockEnv) {
        self.counters.requests += 1;
        let manager = (self.manager)(object);
        let slice = self.slices(env).number(now);
        self.queues.of(object).asked = now;
        if manager != self.me {
            env.send(manager, &LockMessage::Request { object, attempt, slice });
        } else if let Some(tail) = self.lines.join(object, self.me) {
            let next = Turn { slice, node: self.me };
            env.send(tail, &LockMessage::Pass { object, next, attempt });
        }
    }

    /// At the manager: another node asks for the token.
    fn enqueue(&mut self, object: Object, next: Turn, attempt: Option<u64>, env: &mut dyn LockEnv) -> bool {
        if (self.manager)(object) != self.me || next.node == self.me {
            return false;
        }
        let Some(tail) = self.lines.join(object, next.node) else { return false };
        if tail == self.me {
            return self.succeed(object, next, attempt, env);
        }
        env.send(tail, &LockMessage::Pass { object, next, attempt });
        true
    }

    /// At the tail: `next` comes next in the queue of nodes.
    fn succeed(&mut self, object: Object, next: Turn, attempt: Option<u64>, env: &mut dyn LockEnv) -> bool {
        if next.node == self.me {
            return false;
        }
        self.settle(object, env);
        self.slices(env).saw(next.slice);
        let entry = self.table.entry(object);
        // A node that only tries must not wait for the uses of this one.
        let stay = if attempt.is_none() { self.stay(object, next, env.now(), env) } else { None };
        let rests = stay.is_some_and(|stay| self.will_use(stay, env));
        loop {
            match entry.word() {
                Word::Free if rests && entry.transition(Word::Free, Word::FreeQueued) => break,
                // Mostly nothing is dirty, and nobody here wants the mutex: then all is done without a queue.
                Word::Free if !rests && entry.transition(Word::Free, Word::Leaving) => {
                    self.leave(object, next.node, env);
                    return true;
                }
                // A thread's fast path raced with this one: look again.
                Word::Free => {}
                Word::Held if !entry.transition(Word::Held, Word::HeldQueued) => {}
                Word::Held | Word::HeldQueued => break,
                Word::Absent if self.queues.get(object).is_some_and(|queue| queue.requested) => break,
                Word::Common => {
                    send_common(object, next.node, env);
                    return true;
                }
                Word::Absent | Word::Leaving | Word::New | Word::FreeQueued => return false,
            }
        }
        let queue = self.queues.of(object);
        if queue.next.replace(next).is_some() {
            return false;
        }
        queue.handovers = 0;
        if let Some(stay) = stay.filter(|_| entry.word() != Word::Absent) {
            let is_free = entry.word() == Word::FreeQueued;
            self.keep(object, stay);
            if is_free {
                self.begin_to_hold(object, env);
            }
        }
        if let Some(attempt) = attempt {
            self.asked(object, next.node, attempt, env);
        }
        true
    }

    fn token(&mut self, object: Object, from: NodeId, kept: bool, env: &mut dyn LockEnv) -> bool {
        let Some(queue) = self.queues.get_mut(object) else { return false };
        if !std::mem::take(&mut queue.requested) {
            return false;
        }
        self.counters.tokens_received += 1;
        let now = env.now();
        let (next, waited) = (queue.next, now.saturating_sub(queue.asked));
        if let Some(next) = next
            && queue.waiting.is_empty()
        {
            // Nobody here uses it, so there is nothing to release or acquire on the way.
            self.queues.forget(object);
            self.walks.unused(object);
            self.send_token(object, next.node, kept, env);
            return true;
        }
        if queue.waiting.is_empty() {
            self.table.entry(object).came_early();
        } else {
            self.came(object, waited, kept, now, env);
        }
        let stay = next.and_then(|next| self.stay(object, next, now, env));
        env.arrived(object, from);
        self.hand_over(object, env);
        if let Some(stay) = stay {
            self.keep(object, stay);
        }
        true
    }

    /// Gives the mutex to the first waiting thread. If there is none, it becomes free: then returns false.
    fn hand_over(&mut self, object: Object, env: &mut dyn LockEnv) -> bool {
        let entry = self.table.entry(object);
        let queue = self.queues.of(object);
        let Some(first) = queue.waiting.pop_front() else {
            self.queues.forget(object);
            entry.set(Word::Free);
            return false;
        };
        entry.own(first.thread);
        queue.handovers += u32::from(queue.next.is_some());
        let (failed, asking) = (queue.take_attempts(u64::MAX), std::mem::take(&mut queue.asking));
        let word = queue.held();
        if word == Word::Held {
            self.queues.forget(object);
        }
        entry.set(word);
        env.resume(first.waiter, LockGrant::Acquired);
        for waiter in failed {
            env.resume(waiter, LockGrant::Busy);
        }
        for (to, attempt) in asking {
            env.send(to, &LockMessage::Busy { object, attempt });
        }
        true
    }

    /// The token, whose word says so already, leaves for `to`.
    fn leave(&mut self, object: Object, to: NodeId, env: &mut dyn LockEnv) {
        let elsewhere = u32::from((self.manager)(object) != self.me);
        let entry = self.table.entry(object);
        if entry.is_unused() {
            self.walks.unused(object);
        }
        let departures = entry.depart().saturating_add(elsewhere);
        let common = departures >= self.common_after && env.can_be_common();
        match env.pass(object, (!common).then_some(to)) {
            Outcome::Done => self.pass_on(object, to, common, env),
            Outcome::Wait => self.queues.of(object).leaving = Some((to, common)),
        }
    }

    /// All is released: the mutex becomes `common` if it can, otherwise the token goes, and is asked back if threads of this node wait
    /// for it.
    fn pass_on(&mut self, object: Object, to: NodeId, common: bool, env: &mut dyn LockEnv) {
        if common && self.make_common(object, env) {
            send_common(object, to, env);
            self.becomes_common(object, env);
            return;
        }
        self.table.entry(object).set(Word::Absent);
        let now = env.now();
        let kept = self.left(object, now, env);
        self.send_token(object, to, kept, env);
        let Some(queue) = self.queues.get_mut(object) else { return };
        if queue.waiting.is_empty() {
            self.queues.forget(object);
        } else {
            queue.requested = true;
            let attempt = queue.latest_attempt();
            self.hot.wanted(object, now);
            self.request(object, attempt, now, env);
        }
    }

    fn send_token(&mut self, object: Object, to: NodeId, kept: bool, env: &mut dyn LockEnv) {
        self.counters.tokens_sent += 1;
        env.send(to, &LockMessage::Token { object, kept, common: false });
    }
}
