//! Readers-writer locks.

use crate::Node;
use gondwana_coherence::sync::{Object, Request};
use std::time::Instant;

/// What is done to a readers-writer lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwOperation {
    /// Lock for reading.
    Read,
    /// Lock for writing.
    Write,
}

impl Node {
    /// Locks a readers-writer lock; `attempt` fails instead of waiting.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn rwlock(
        &'static self,
        lock: usize,
        operation: RwOperation,
        attempt: bool,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        let write = operation == RwOperation::Write;
        let request = |attempt| Request::RwLock { lock: Object(lock as u64), thread, write, attempt };
        // A lock that nobody holds against the caller never times out, though others may wait before it.
        let at_once = until.is_some() && self.request(lock, request(true)).is_ok();
        if !at_once {
            self.request_until(lock, request(attempt), until)?;
        }
        self.acquire(Some(Object(lock as u64)));
        Ok(())
    }

    /// `pthread_rwlock_unlock`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn rwlock_unlock(&'static self, lock: usize) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        self.release(Some(Object(lock as u64)));
        self.request(lock, Request::RwUnlock { lock: Object(lock as u64), thread }).map(|_| ())
    }
}
