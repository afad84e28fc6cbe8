//! Semaphores.

use crate::thread::EndedBy;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Initialised, ObjectKind, Request, Resting};
use gondwana_control::Awaited;
use gondwana_page::to_usize;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Node {
    /// `sem_post`.
    ///
    /// # Errors
    /// `EOVERFLOW`.
    pub fn semaphore_post(&'static self, semaphore: Initialised) -> Result<(), i32> {
        if self.resting_semaphore(semaphore).is_some_and(|known| known.post(semaphore.stamp)) {
            return Ok(());
        }
        self.request_released(semaphore.object, Request::SemPost { semaphore }).map(|_| ())
    }

    /// `sem_wait`, `sem_timedwait`.
    ///
    /// # Errors
    /// `ETIMEDOUT`, `EINTR`.
    pub fn semaphore_wait(&'static self, semaphore: Initialised, until: Option<Instant>) -> Result<(), i32> {
        if self.take_one_at_hand(semaphore) {
            return Ok(());
        }
        let key = semaphore.object.of_kind(ObjectKind::Semaphore);
        let wait = || self.request_until(key, Request::SemWait { semaphore }, Awaited::Semaphore, until);
        Thread::current(self).interruptibly(self, EndedBy::of_waiting_until(until), wait)?;
        self.acquire(Some(semaphore.object));
        Ok(())
    }

    /// `sem_trywait`.
    ///
    /// # Errors
    /// `EAGAIN`.
    pub fn semaphore_try_wait(&'static self, semaphore: Initialised) -> Result<(), i32> {
        if self.take_one_at_hand(semaphore) {
            return Ok(());
        }
        self.request(to_usize(semaphore.object.0), Request::SemTryWait { semaphore })?;
        self.acquire(Some(semaphore.object));
        Ok(())
    }

    /// `sem_getvalue`.
    pub fn semaphore_value(&'static self, semaphore: Initialised) -> i32 {
        let value = self.request(to_usize(semaphore.object.0), Request::SemGetValue { semaphore });
        i32::try_from(value.unwrap_or(0)).unwrap_or(i32::MAX)
    }

    /// Tells one initialisation of a semaphore from another.
    pub fn stamp(&self) -> u64 {
        (u64::from(self.me.0) + 1) << 48 | self.sync.stamps.fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    fn resting_semaphore(&self, semaphore: Initialised) -> Option<&Resting> {
        self.sync.resting.resting(semaphore.object.of_kind(ObjectKind::Semaphore))
    }

    /// Waits for a semaphore that rests here and is not 0; otherwise false.
    #[inline]
    fn take_one_at_hand(&self, semaphore: Initialised) -> bool {
        self.resting_semaphore(semaphore).is_some_and(|known| known.take_one(semaphore.stamp))
    }
}
