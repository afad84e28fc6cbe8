//! Tokens that a node asks for before its threads want them: those of mutexes at equal distances, such as one in each element of an
//! array, that a thread locks in turn.

use super::{LockEnv, Locks};
use crate::sync::entry::Word;
use crate::sync::{Object, Thread};
use gondwana_page::to_usize;
use std::time::Duration;

/// Most tokens that one thread asks for early.
const MOST: u8 = 32;

/// From this window on a walk is taken to go where this node has used no mutex before.
const TRUSTED: u8 = 8;

/// Mutexes farther apart, in bytes, are hardly in one array.
const LONGEST_STRIDE: u64 = 1 << 12;

/// How many threads are told apart.
const PLACES: usize = 16;

/// What one thread locks whose token is elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Walk {
    thread: u64,
    /// The address of the last mutex.
    last: u64,
    /// The distance to the next one in bytes; 0 while that is open.
    stride: i64,
    /// The tokens of so many mutexes behind it were asked for.
    window: u8,
    /// The longest window; fewer after tokens have left again that no thread had used.
    most: u8,
}

/// The walks of the threads of this node over arrays of mutexes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Walks([Walk; PLACES]);

impl Walks {
    /// A thread waits for a token: the distance, in bytes, between the mutexes that it will lock next, and how many.
    fn wanted(&mut self, thread: Thread, object: Object) -> (i64, u8) {
        let walk = &mut self.0[to_usize(thread.0) % PLACES];
        if walk.thread != thread.0 {
            *walk = Walk { thread: thread.0, most: MOST, ..Walk::default() };
        }
        let distance = object.0.wrapping_sub(walk.last).cast_signed();
        walk.last = object.0;
        let goes_on = walk.stride != 0
            && distance % walk.stride == 0
            && (1..=i64::from(walk.window) + 1).contains(&(distance / walk.stride));
        if goes_on {
            walk.most = (walk.most + 1).min(MOST);
            walk.window = (2 * walk.window).max(2).min(walk.most);
        } else {
            walk.stride = if distance.unsigned_abs() <= LONGEST_STRIDE { distance } else { 0 };
            walk.window = 0;
        }
        (walk.stride, walk.window)
    }

    /// A token has left that was asked for early, and that no thread has used.
    pub(super) fn unused(&mut self, object: Object) {
        for walk in &mut self.0 {
            let distance = object.0.wrapping_sub(walk.last).cast_signed();
            let steps = distance.checked_div(walk.stride).unwrap_or(0);
            if (1..=i64::from(walk.window)).contains(&steps) {
                walk.most /= 2;
                walk.window = walk.window.min(walk.most);
            }
        }
    }
}

impl Locks {
    /// A thread waits for a token: asks for those that it will probably want next. What this node has not used before need not be a
    /// mutex: that is asked for only on a walk that has gone on for some time.
    pub(super) fn ask_ahead(&mut self, object: Object, thread: Thread, now: Duration, env: &mut dyn LockEnv) {
        let (stride, window) = self.walks.wanted(thread, object);
        let goes_anywhere = window >= TRUSTED && !env.can_be_common();
        for step in 1..=i64::from(window) {
            let address = object.0.checked_add_signed(stride * step).filter(|address| *address != 0);
            let Some(next) = address.map(Object) else { break };
            if goes_anywhere {
                self.settle(next, env);
            }
            self.ask_early(next, now, env);
        }
    }

    /// Asks for a token that no thread waits for, if that may be done.
    pub(in crate::sync) fn ask_early(&mut self, object: Object, now: Duration, env: &mut dyn LockEnv) {
        if self.can_ask_early(object) {
            self.queues.of(object).requested = true;
            self.counters.early += 1;
            self.request(object, None, now, env);
        }
    }

    /// True if this node has used the mutex before, whose token is elsewhere and was not asked for.
    pub(in crate::sync) fn can_ask_early(&self, object: Object) -> bool {
        self.table.get(object).is_some_and(|entry| entry.word() == Word::Absent)
            && !self.queues.get(object).is_some_and(|queue| queue.requested)
    }
}
