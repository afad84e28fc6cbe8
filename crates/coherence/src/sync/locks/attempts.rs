//! Trylocks: finding out whether somebody holds a mutex whose token is elsewhere.

use super::{LockEnv, LockGrant, Locks, TryOutcome, Waiting};
use super::{LockMessage, Object, Thread};
use crate::Waiter;
use crate::sync::entry::Word;
use gondwana_topology::NodeId;

/// A trylock fails only if a thread held the mutex, or got it, at some moment of the call. A token that is on its
/// way proves nothing, so a trylock that does not find the mutex here waits until either the token comes or some
/// node says that a thread of its own has the mutex. It never waits for that thread: a node that awaits the token
/// itself makes a note, to speak up when one of its threads gets it, and has the node before it in line asked.
/// Wherever the token is by then, it must pass, or rest at, a node that was asked.
impl Locks {
    /// `pthread_mutex_trylock` after [`Entry::fast_try_lock`](super::super::Entry::fast_try_lock) said `Slow`.
    pub fn try_lock(
        &mut self,
        object: Object,
        thread: Thread,
        waiter: Waiter,
        env: &mut dyn LockEnv,
    ) -> TryOutcome {
        self.settle(object, env);
        let entry = self.table.entry(object);
        let word = loop {
            match entry.word() {
                Word::Free if entry.lock_at_hand(thread) => return TryOutcome::Acquired,
                Word::FreeQueued => {
                    self.use_kept(object, thread);
                    return TryOutcome::Acquired;
                }
                Word::Free => {}
                Word::Held | Word::HeldQueued => return TryOutcome::Busy,
                Word::Common => {
                    env.resume(waiter, LockGrant::Common);
                    return TryOutcome::Wait;
                }
                Word::Absent if env.is_common(object) => entry.set(Word::Common),
                word => break word,
            }
        };
        self.attempts += 1;
        let attempt = self.attempts;
        let queue = self.queues.of(object);
        queue.waiting.push_back(Waiting { waiter, thread, attempt: Some(attempt) });
        if word == Word::Absent {
            if std::mem::replace(&mut queue.requested, true) {
                self.ask_before(object, self.me, attempt, env);
            } else {
                self.request(object, Some(attempt), env.now(), env);
            }
        }
        TryOutcome::Wait
    }

    /// This node awaits the token: the manager knows whom to ask for it.
    pub(super) fn ask_before(&mut self, object: Object, to: NodeId, attempt: u64, env: &mut dyn LockEnv) {
        let manager = (self.manager)(object);
        if manager == self.me {
            self.ask_on(object, self.me, to, attempt, env);
        } else {
            env.send(manager, &LockMessage::AskBefore { object, to, attempt });
        }
    }

    /// At the manager: `from` awaits the token, so the node before it is asked.
    pub(super) fn ask_on(
        &mut self,
        object: Object,
        from: NodeId,
        to: NodeId,
        attempt: u64,
        env: &mut dyn LockEnv,
    ) {
        match self.lines.before(object, from, to) {
            Some(before) if before == self.me => self.asked(object, to, attempt, env),
            Some(before) => env.send(before, &LockMessage::Ask { object, to, attempt }),
            None => {}
        }
    }

    /// `to` wants to hear if a thread of this node holds the mutex or gets it.
    pub(super) fn asked(&mut self, object: Object, to: NodeId, attempt: u64, env: &mut dyn LockEnv) {
        self.settle(object, env);
        let entry = self.table.entry(object);
        if entry.is_locked() {
            env.send(to, &LockMessage::Busy { object, attempt });
            return;
        }
        // A node that only tries must not wait for the uses of this one.
        self.let_go_of(object, env);
        // Without a request the token has gone on, towards nodes that were asked before this one.
        if let Some(queue) = self.queues.get_mut(object)
            && queue.requested
        {
            queue.note_asking(to, attempt);
            self.ask_before(object, to, attempt, env);
        }
    }

    /// Some thread has the mutex. Trylocks that began later than the question don't learn anything from that.
    pub(super) fn busy(&mut self, object: Object, attempt: u64, env: &mut dyn LockEnv) -> bool {
        let waiters = self.queues.get_mut(object).map(|queue| queue.take_attempts(attempt));
        for waiter in waiters.into_iter().flatten() {
            env.resume(waiter, LockGrant::Busy);
        }
        attempt <= self.attempts
    }
}
