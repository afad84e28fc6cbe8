//! Waiting at addresses.

use super::request::Ended;
use crate::wait_slots::event;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Object, ObjectKind, Request};
use gondwana_control::Awaited;
use std::time::Instant;

impl Node {
    /// Waits at an address while `unchanged` says so.
    ///
    /// # Errors
    /// `EAGAIN` if the word has changed, `ETIMEDOUT`.
    pub fn futex_wait(
        &'static self,
        address: usize,
        bitset: u32,
        unchanged: impl Fn() -> bool + 'static,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        self.privately(move || {
            let server = self.manager(address);
            let slot = Thread::current(self).slot;
            let futex = Object(address as u64);
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            let ticket = self.new_ticket();
            self.submit(server, ticket, Request::FutexWait { futex, bitset });
            let events = self.wait(slot, event::QUEUED | event::ANSWERED, None);
            if events & event::FAILED != 0 {
                return Err(libc::EINVAL);
            }
            let still = unchanged();
            let until = if still { until } else { Some(Instant::now()) };
            let _noted = self.note_wait(slot, Awaited::Futex, futex.0, until);
            let ended = self.await_or_cancel(
                (slot, ticket),
                server,
                until,
                Request::Cancel { key: futex.of_kind(ObjectKind::Futex) },
            );
            self.acquire(Some(futex));
            match ended {
                Ended::Answered(_) => Ok(()),
                Ended::TimedOut if still => Err(libc::ETIMEDOUT),
                Ended::TimedOut => Err(libc::EAGAIN),
            }
        })
    }

    /// Wakes threads that wait at an address; returns how many.
    ///
    /// # Errors
    /// None are known.
    pub fn futex_wake(&'static self, address: usize, count: u32, bitset: u32) -> Result<i64, i32> {
        let futex = Object(address as u64);
        self.release(Some(futex));
        if self.nobody_waits(futex.of_kind(ObjectKind::Futex)) {
            return Ok(0);
        }
        self.request(address, Request::FutexWake { futex, count, bitset })
    }
}
