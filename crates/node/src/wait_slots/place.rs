//! The place where one thread waits for what others announce.

use super::event;
use super::primitive::{AtomicI64, AtomicU32, FutexWord, Ordering};
use std::time::{Duration, Instant};

/// Set while the thread sleeps in the kernel and has to be woken.
const SLEEPING: u32 = 1 << 31;

/// All bytes zero is a place without events.
#[derive(Default)]
pub(super) struct Place {
    events: FutexWord,
    /// The number of the owner plus 1; 0 if it is no thread of the program.
    pub thread: AtomicU32,
    result: AtomicI64,
}

impl Place {
    /// Forgets earlier events of `mask`: called by the owner before it begins an operation that ends with one.
    pub(super) fn arm(&self, mask: u32) {
        self.events.word().fetch_and(!mask, Ordering::Relaxed);
    }

    /// Announces events to the owner, with a result if one belongs to them. True if the owner sleeps and the caller has to
    /// [`wake`](Place::wake) it; it is counted among those that are `waking` until it runs.
    #[must_use]
    pub(super) fn announce(&self, events: u32, result: i64, waking: &AtomicU32) -> bool {
        let word = self.events.word();
        if events & (event::DONE | event::FAILED | event::PASSED) != 0 {
            self.result.store(result, Ordering::Relaxed);
        }
        // Release: the result, and whatever was done for the waiter, is visible to it when it sees the event.
        let before = word.fetch_or(events, Ordering::AcqRel);
        // Whoever clears the mark wakes.
        let wakes = before & SLEEPING != 0 && word.fetch_and(!SLEEPING, Ordering::AcqRel) & SLEEPING != 0;
        if wakes {
            waking.fetch_add(1, Ordering::Relaxed);
        }
        wakes
    }

    /// Wakes the owner. One that does not sleep for what was announced sleeps on.
    pub(super) fn wake(&self) {
        self.events.wake();
    }

    /// The events of `mask` that have happened.
    pub(super) fn seen(&self, mask: u32) -> u32 {
        self.events.word().load(Ordering::Acquire) & mask
    }

    /// The result that came with the events that have one.
    pub(super) fn result(&self) -> i64 {
        self.result.load(Ordering::Relaxed)
    }

    /// The owner sleeps until an event of `mask` has happened or the deadline has passed; returns those that have happened.
    pub(super) fn sleep(&self, mask: u32, deadline: Option<Instant>, waking: &AtomicU32) -> u32 {
        let word = self.events.word();
        loop {
            let now = word.load(Ordering::Acquire);
            if now & mask != 0 {
                return now & mask;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return 0;
            }
            let asleep = now | SLEEPING;
            if word.compare_exchange(now, asleep, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.events.wait(asleep, left);
                // If somebody else has cleared the mark, this thread was woken.
                if word.fetch_and(!SLEEPING, Ordering::AcqRel) & SLEEPING == 0 {
                    waking.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }
}
