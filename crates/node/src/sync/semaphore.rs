//! Semaphores.

use crate::Node;
use gondwana_coherence::sync::{Initialised, Request};
use gondwana_page::to_usize;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Node {
    /// `sem_post`.
    ///
    /// # Errors
    /// `EOVERFLOW`.
    pub fn semaphore_post(&'static self, semaphore: Initialised) -> Result<(), i32> {
        self.release(Some(semaphore.object));
        self.request(to_usize(semaphore.object.0), Request::SemPost { semaphore }).map(|_| ())
    }

    /// `sem_wait`, `sem_timedwait`.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub fn semaphore_wait(&'static self, semaphore: Initialised, until: Option<Instant>) -> Result<(), i32> {
        self.request_until(to_usize(semaphore.object.0), Request::SemWait { semaphore }, until)?;
        self.acquire(Some(semaphore.object));
        Ok(())
    }

    /// `sem_trywait`.
    ///
    /// # Errors
    /// `EAGAIN`.
    pub fn semaphore_try_wait(&'static self, semaphore: Initialised) -> Result<(), i32> {
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
}
