use crate::Waiter;
use crate::sync::{Object, ObjectKey};

/// Work of an [`Engine`](super::Engine) that goes on when a release is complete: among the waiters of a protocol, beside threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Continuation(u32);

/// Set in the waiters of engines. A node must not set it in those of its threads.
const ENGINE: u64 = 1 << 63;

impl Continuation {
    /// `Some` if the waiter is an engine's.
    #[inline]
    #[must_use]
    pub fn of(waiter: Waiter) -> Option<Self> {
        let number = u32::try_from(waiter.0 & !ENGINE).ok()?;
        (waiter.0 & ENGINE != 0).then_some(Self(number))
    }

    pub(super) fn waiter(self) -> Waiter {
        Waiter(ENGINE | u64::from(self.0))
    }
}

/// What goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingWork {
    /// The token of a mutex leaves.
    Token(Object),
    /// Threads have arrived at a barrier.
    Barrier(Object),
    /// An object leaves that rested here.
    Kept(ObjectKey),
}

/// All such work.
#[derive(Debug, Default)]
pub(super) struct Pending {
    work: Vec<Option<PendingWork>>,
    free: Vec<u32>,
}

impl Pending {
    pub(super) fn add(&mut self, work: PendingWork) -> Continuation {
        let number = self.free.pop().unwrap_or_else(|| {
            self.work.push(None);
            u32::try_from(self.work.len() - 1).expect("there are fewer objects in use")
        });
        self.work[number as usize] = Some(work);
        Continuation(number)
    }

    pub(super) fn take(&mut self, continuation: Continuation) -> Option<PendingWork> {
        let work = self.work.get_mut(continuation.0 as usize)?.take()?;
        self.free.push(continuation.0);
        Some(work)
    }
}
