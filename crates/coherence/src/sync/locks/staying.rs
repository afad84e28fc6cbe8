//! Tokens that stay although another node waits: those of hot mutexes for some uses, and in a slice all that come back.

use super::{LockEnv, Locks};
use crate::slices::{SliceRules, Slices, Turn};
use crate::sync::entry::Word;
use crate::sync::object_map::scatter;
use crate::sync::{Object, Thread};
use std::time::Duration;

/// How often threads of this node may lock a hot mutex while another node waits for it. A hand-over takes as long as dozens of
/// critical sections.
pub const KEPT_USES: u32 = 200;

/// The token of a hot mutex stays at least so long if it is used, and otherwise for a node's share of the time that it took to come
/// last time: then hand-overs take half of the time at most, however long they are, and waits don't grow.
const HOLD: Duration = Duration::from_micros(20);

/// For the token of a hot mutex no thread of another node waits longer than this for each node before it.
const LONGEST_HOLD: Duration = Duration::from_millis(2);

/// Slices of tokens.
pub(super) const SLICES: SliceRules = SliceRules {
    share: 16,
    shortest: Duration::ZERO,
    longest: Duration::from_millis(20),
    soon: Duration::from_millis(100),
    least: 4,
    remembered: 1 << 13,
};

/// For how long a token stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// For some uses, as the mutex is hot.
    Uses,
    /// Until the slice ends, now expected at this time.
    Slice(Duration),
}

impl Locks {
    /// A thread locks a mutex whose token has stayed for that.
    pub(super) fn use_kept(&mut self, object: Object, thread: Thread) {
        let entry = self.table.entry(object);
        entry.own(thread);
        entry.set(Word::HeldQueued);
        self.queues.of(object).uses_left -= 1;
        self.counters.kept += 1;
    }

    /// Whether the token stays when another node waits for it.
    pub(super) fn stay(
        &self,
        object: Object,
        next: Turn,
        now: Duration,
        env: &mut dyn LockEnv,
    ) -> Option<Stay> {
        let slice = self.slice_end(object, next, now, env).map(Stay::Slice);
        slice.or((self.kept_uses > 0 && self.hot.is_hot(object)).then_some(Stay::Uses))
    }

    /// True if threads of this node may use a mutex that is free before long. In a slice they do, once they have what they wait for.
    pub(super) fn will_use(&self, stay: Stay, env: &mut dyn LockEnv) -> bool {
        match stay {
            Stay::Uses => env.is_active(),
            Stay::Slice(_) if env.slices().is_some() => env.is_computing(),
            Stay::Slice(_) => env.is_active() || self.queues.any_requested(),
        }
    }

    /// The token, which is here and which another node waits for, stays.
    pub(super) fn keep(&mut self, object: Object, stay: Stay) {
        let queue = self.queues.of(object);
        (queue.uses_left, queue.until) = match stay {
            Stay::Uses => (self.kept_uses, None),
            Stay::Slice(end) => (u32::MAX, Some(end)),
        };
        queue.sliced = queue.until.is_some();
        self.newly_kept |= queue.sliced;
        if !self.kept.contains(&object) {
            self.kept.push(object);
        }
    }

    /// The mutex is free, and its token stays for the next use. From now on its time runs, if it does not already: a holder that
    /// has no processor yet has not used any.
    pub(super) fn begin_to_hold(&mut self, object: Object, env: &dyn LockEnv) {
        let hold = (self.hot.waited(object) / self.nodes).clamp(HOLD, LONGEST_HOLD);
        let queue = self.queues.of(object);
        if queue.until.is_none() {
            queue.until = Some(env.now() + hold);
            self.newly_kept = true;
        }
    }

    /// True if the time of tokens has begun to run since the last time: [`Locks::let_go_due`] must be called.
    pub fn take_newly_kept(&mut self) -> bool {
        std::mem::take(&mut self.newly_kept)
    }

    /// No thread here will use tokens that stay: each leaves at once, or as soon as its holder unlocks.
    pub fn let_go(&mut self, env: &mut dyn LockEnv) {
        // Where pages have slices, threads that run again before one ends go on in it.
        if env.slices().is_none() {
            self.slices.finish();
        }
        let mut kept = std::mem::take(&mut self.kept);
        for object in kept.drain(..) {
            self.let_go_of(object, env);
        }
        self.kept = kept;
    }

    /// As [`Locks::let_go`], of tokens whose time is over. When that of the next one is.
    pub fn let_go_due(&mut self, env: &mut dyn LockEnv) -> Option<Duration> {
        let (now, mut next) = (env.now(), None::<Duration>);
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|&object| {
            let Some(queue) = self.queues.get(object).filter(|queue| queue.uses_left > 0) else {
                return false;
            };
            // What has come back meanwhile makes a slice longer.
            let longer =
                queue.next.filter(|_| queue.sliced).and_then(|next| self.slice_end(object, next, now, env));
            let until = longer.or(queue.until);
            let is_due = until.is_some_and(|until| until <= now);
            if is_due {
                self.let_go_of(object, env);
            } else if let Some(until) = until {
                next = Some(next.map_or(until, |next| next.min(until)));
            }
            !is_due
        });
        self.kept = kept;
        next
    }

    /// As [`Locks::let_go`], of one mutex. Does nothing if its token is not here to stay.
    pub(super) fn let_go_of(&mut self, object: Object, env: &mut dyn LockEnv) {
        let Some(queue) = self.queues.get_mut(object) else { return };
        if std::mem::take(&mut queue.uses_left) == self.kept_uses {
            self.hot.unused(object);
        }
        let entry = self.table.entry(object);
        if entry.word() == Word::FreeQueued
            && let Some(next) = queue.next.take()
        {
            entry.set(Word::Leaving);
            self.leave(object, next.node, env);
        }
    }

    /// The token comes, for which a thread here has waited so long; `kept`: it has stayed for a slice meanwhile.
    pub(super) fn came(
        &mut self,
        object: Object,
        waited: Duration,
        kept: bool,
        now: Duration,
        env: &mut dyn LockEnv,
    ) {
        self.hot.came(object, waited);
        self.slices(env).came(key(object), waited, kept, now);
    }

    /// The token leaves. True if it has stayed for a slice.
    pub(super) fn left(&mut self, object: Object, now: Duration, env: &mut dyn LockEnv) -> bool {
        self.hot.left(object, now);
        self.slices(env).lost(key(object), true, now);
        self.queues.get_mut(object).is_some_and(|queue| {
            (queue.uses_left, queue.until) = (0, None);
            std::mem::take(&mut queue.sliced)
        })
    }

    /// Until when the token stays that another node wants, if it stays for a slice.
    fn slice_end(
        &self,
        object: Object,
        next: Turn,
        now: Duration,
        env: &mut dyn LockEnv,
    ) -> Option<Duration> {
        env.slices().as_deref().unwrap_or(&self.slices).keeps(key(object), next, self.me, now)
    }

    /// The slices of this node.
    pub(super) fn slices<'a>(&'a mut self, env: &'a mut dyn LockEnv) -> &'a mut Slices {
        env.slices().unwrap_or(&mut self.slices)
    }
}

/// By what the slices know a token.
fn key(object: Object) -> u64 {
    scatter(object.0) | Slices::OTHERS
}
