//! The ends of threads.

use super::request::Ended;
use crate::Node;
use crate::thread_number::node_of;
use crate::wait_slots::event;
use gondwana_coherence::sync::{Request, Thread as ThreadId};
use gondwana_control::Awaited;
use std::time::Instant;

/// How long to wait for a thread to end.
#[derive(Clone, Copy, Debug)]
pub enum JoinWait {
    /// Until it does.
    Forever,
    /// Until then.
    Until(Instant),
    /// Not at all.
    Not,
}

impl Node {
    /// Waits for a thread's value.
    ///
    /// # Errors
    /// Error numbers, as from `pthread_join` and its relatives.
    pub fn join_thread(&'static self, thread: u64, wait: JoinWait) -> Result<u64, i32> {
        self.privately(move || {
            let (by, slot) = self.thread_number();
            if by.0 == thread {
                return Err(libc::EDEADLK);
            }
            let server = node_of(thread);
            let thread = ThreadId(thread);
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            let ticket = self.new_ticket();
            self.submit(server, ticket, Request::Join { thread, by, attempt: matches!(wait, JoinWait::Not) });
            let until = if let JoinWait::Until(until) = wait { Some(until) } else { None };
            let _noted = self.note_wait(slot, Awaited::Join, thread.0, until);
            let ended = self.await_or_cancel((slot, ticket), server, until, Request::CancelJoin { thread });
            self.acquire(None);
            match ended {
                Ended::Answered(answer) => answer.map(i64::cast_unsigned),
                Ended::TimedOut => Err(libc::ETIMEDOUT),
            }
        })
    }

    /// `pthread_detach`.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn detach_thread(&'static self, thread: u64) -> Result<(), i32> {
        self.request_of(node_of(thread), Request::Detach { thread: ThreadId(thread) }).map(|_| ())
    }
}
