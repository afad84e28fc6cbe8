use super::request::{Caller, Initialised, Reply};
use super::resting::Rest;
use super::{Object, SyncError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The largest value of a semaphore.
pub const SEM_VALUE_MAX: u32 = i32::MAX as u32;

/// A counting semaphore; waiters are served first come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Semaphore {
    value: u32,
    stamp: u64,
    waiting: VecDeque<Caller>,
}

impl Semaphore {
    pub(super) fn new(value: u32, stamp: u64) -> Self {
        Self { value, stamp, waiting: VecDeque::new() }
    }

    /// What of the semaphore can rest with a node: `None` if threads wait for it.
    pub(super) fn rest(&self) -> Option<Rest> {
        let Self { value: count, stamp, .. } = *self;
        self.is_idle().then_some(Rest { count, writer: false, stamp })
    }

    /// What the semaphore is like: as if it had just been initialised with its value.
    pub(super) fn present(&self, object: Object) -> Initialised {
        Initialised { object, value: self.value, stamp: self.stamp }
    }

    /// True if the semaphore comes from another initialisation than `stamp` and nobody depends on it.
    pub(super) fn is_stale(&self, stamp: u64) -> bool {
        self.stamp != stamp && self.is_idle()
    }

    pub(super) fn post(&mut self, out: &mut Vec<Reply>) -> Result<i64, SyncError> {
        if let Some(first) = self.waiting.pop_front() {
            out.push(first.done(0));
        } else if self.value < SEM_VALUE_MAX {
            self.value += 1;
        } else {
            return Err(SyncError::Overflow);
        }
        Ok(0)
    }

    pub(super) fn wait(&mut self, caller: Caller, out: &mut Vec<Reply>) {
        if self.try_wait().is_ok() {
            out.push(caller.done(0));
        } else {
            self.waiting.push_back(caller);
        }
    }

    pub(super) fn try_wait(&mut self) -> Result<i64, SyncError> {
        self.value = self.value.checked_sub(1).ok_or(SyncError::Exhausted)?;
        Ok(0)
    }

    pub(super) fn value(&self) -> u32 {
        self.value
    }

    pub(super) fn cancel(&mut self, caller: Caller) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| *waiting != caller);
        self.waiting.len() != before
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}
