//! What a place is made of. The model test puts checked counterparts in this module's place.

pub(super) use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use std::time::Duration;

/// A word that a thread of this process can sleep on.
#[derive(Default)]
#[repr(transparent)]
pub(super) struct FutexWord(AtomicU32);

impl FutexWord {
    /// The word itself.
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// Sleeps while the word is `expected`; looking and falling asleep are one step for [`FutexWord::wake`].
    pub(super) fn wait(&self, expected: u32, timeout: Option<Duration>) {
        super::futex_wait(&self.0, expected, timeout);
    }

    /// Wakes the sleeper, if there is one.
    pub(super) fn wake(&self) {
        super::futex_wake(&self.0);
    }
}
