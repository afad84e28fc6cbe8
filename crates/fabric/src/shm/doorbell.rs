//! Notifies a node, asleep or not, of messages in its rings.

use super::primitive::{FutexWord, Ordering, fence, fence_after_change};
use std::time::{Duration, Instant};

/// The service thread sleeps, or is about to.
const SLEEPER: u32 = 1;
/// The next sleep ends at once.
const INTERRUPT: u32 = 2;
/// One thread that polls.
const POLLER: u32 = 4;
/// All that can poll.
const POLLERS: u32 = WAITER - POLLER;
/// One thread that sleeps and must be woken for messages of `leave`; the bits from here up count such threads.
const WAITER: u32 = 1 << 17;
/// All other bits.
const FLAGS_AND_POLLERS: u32 = WAITER - 1;

/// One node's doorbell: a word in shared memory which says whether senders must wake the node.
///
/// Lost wake-ups are excluded as in Dekker's algorithm. A sender writes its message, *then* reads this word. A
/// receiver that is about to stop polling writes this word, *then* polls the rings once more. Between the two steps
/// each has a sequentially consistent fence, so it cannot be that the sender reads the old word and the receiver does
/// not see the message. One of them acts, in the worst case both.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct Doorbell {
    word: FutexWord,
}

impl Doorbell {
    /// Notifies the node of a published message. Makes a system call only if its service thread sleeps and no other
    /// thread polls.
    pub(super) fn ring(&self) {
        // Orders the caller's publication before the look at the word, see `Doorbell`.
        fence();
        // Relaxed: the value carries no data, it only decides whether to wake.
        if self.word.word().load(Ordering::Relaxed) & FLAGS_AND_POLLERS == SLEEPER {
            self.wake();
        }
    }

    /// As [`Doorbell::ring`], but only if threads wait. Other threads poll before they wait.
    pub(super) fn ring_for_waiters(&self) {
        fence();
        let word = self.word.word().load(Ordering::Relaxed);
        if word & FLAGS_AND_POLLERS == SLEEPER && word >= WAITER {
            self.wake();
        }
    }

    /// Counts one more thread that is about to sleep and must be woken for messages of `leave`. If no other thread
    /// polls, `ready` returns whether there are any.
    pub(super) fn begin_waiting(&self, ready: impl FnOnce() -> bool) {
        let before = self.word.word().fetch_add(WAITER, Ordering::AcqRel);
        // Orders the change of the word before the look at the rings, see `Doorbell`.
        fence_after_change();
        if before & FLAGS_AND_POLLERS == SLEEPER && ready() {
            self.wake();
        }
    }

    /// One such thread fewer.
    pub(super) fn end_waiting(&self) {
        self.word.word().fetch_sub(WAITER, Ordering::AcqRel);
    }

    /// Makes the present or the next [`Doorbell::sleep`] return.
    pub(super) fn interrupt(&self) {
        if self.word.word().fetch_or(INTERRUPT, Ordering::AcqRel) & SLEEPER != 0 {
            self.word.wake();
        }
    }

    /// One more thread polls.
    pub(super) fn begin_polling(&self) {
        self.word.word().fetch_add(POLLER, Ordering::AcqRel);
    }

    /// One thread fewer polls. If it was the last and the service thread sleeps, `ready` tells whether there is
    /// something for it to do: while there were pollers, senders did not ring. It learns whether threads sleep that must be woken for
    /// messages of `leave`.
    pub(super) fn end_polling(&self, ready: impl FnOnce(bool) -> bool) {
        let after = self.word.word().fetch_sub(POLLER, Ordering::AcqRel) - POLLER;
        if after & FLAGS_AND_POLLERS == SLEEPER {
            // Orders the change of the word before the look at the rings, see `Doorbell`.
            fence_after_change();
            if ready(after >= WAITER) {
                self.wake();
            }
        }
    }

    /// True while a thread polls.
    pub(super) fn is_polled(&self) -> bool {
        self.word.word().load(Ordering::Relaxed) & POLLERS != 0
    }

    /// Sleeps until rung, interrupted, or the time is over. Does not begin to sleep if `ready`.
    ///
    /// If another thread polls, `ready` is not called: that thread takes the messages, and calls `ready` when it
    /// stops polling. Otherwise the service thread would spin while another thread handles a message.
    pub(super) fn sleep(&self, timeout: Option<Duration>, ready: impl FnOnce() -> bool) {
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        let before = self.word.word().fetch_or(SLEEPER, Ordering::AcqRel);
        // Orders the change of the word before the look at the rings, see `Doorbell`.
        fence_after_change();
        if before & POLLERS != 0 || !ready() {
            loop {
                let now = self.word.word().load(Ordering::Acquire);
                if now & SLEEPER == 0 || now & INTERRUPT != 0 {
                    break;
                }
                let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                if left == Some(Duration::ZERO) {
                    break;
                }
                // A poller that starts or stops changes the word, so this returns: check again.
                self.word.wait(now, left);
            }
        }
        self.word.word().fetch_and(!(SLEEPER | INTERRUPT), Ordering::AcqRel);
    }

    fn wake(&self) {
        // Only the thread that clears the flag makes the system call.
        if self.word.word().fetch_and(!SLEEPER, Ordering::AcqRel) & SLEEPER != 0 {
            self.word.wake();
        }
    }
}
