//! Conditions.

use super::request::Ended;
use crate::wait_slots::event;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Kind, Object, ObjectKey, ObjectKind, Request};
use gondwana_control::Awaited;
use std::time::Instant;

impl Node {
    /// `pthread_cond_wait` and its timed forms.
    ///
    /// # Errors
    /// `ETIMEDOUT`, or what unlocking or locking the mutex gives.
    pub fn cond_wait(
        &'static self,
        cond: usize,
        mutex: usize,
        kind: impl Fn() -> Kind + 'static,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        self.privately(move || {
            let server = self.manager(cond);
            let slot = Thread::current(self).slot;
            let cond = Object(cond as u64);
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            let ticket = self.new_ticket();
            self.submit(server, ticket, Request::CondWait { cond });
            // Only a thread that is queued may unlock: a signal must not fall between the two.
            self.wait(slot, event::QUEUED, None);
            let unlocked = self.mutex_unlock(mutex, &kind);
            let until = if unlocked.is_ok() { until } else { Some(Instant::now()) };
            let noted = self.note_wait(slot, Awaited::Condition, cond.0, until);
            let ended = self.await_or_cancel(
                (slot, ticket),
                server,
                until,
                Request::Cancel { key: cond.of_kind(ObjectKind::Condition) },
            );
            drop(noted);
            unlocked?;
            self.mutex_lock(mutex, kind, None)?;
            match ended {
                Ended::Answered(_) => Ok(()),
                Ended::TimedOut => Err(libc::ETIMEDOUT),
            }
        })
    }

    /// `pthread_cond_signal` and `pthread_cond_broadcast`.
    ///
    /// # Errors
    /// None are known.
    pub fn cond_signal(&'static self, cond: usize, all: bool) -> Result<(), i32> {
        let server = self.manager(cond);
        let cond = Object(cond as u64);
        if self.nobody_waits(cond.of_kind(ObjectKind::Condition)) {
            return Ok(());
        }
        let request = move |awaited| {
            if all { Request::CondBroadcast { cond, awaited } } else { Request::CondSignal { cond, awaited } }
        };
        if self.sync.signals.must_wait(server) {
            return self.request_of(server, request(true)).map(|_| ());
        }
        self.privately(move || self.submit(server, self.new_ticket(), request(false)));
        Ok(())
    }

    /// True if a signal to a condition, or at an address, would wake nobody, as far as this node can tell alone.
    #[inline]
    pub(super) fn nobody_waits(&self, key: ObjectKey) -> bool {
        self.sync.resting.resting(key).is_some_and(|known| known.nobody_waits())
    }
}
