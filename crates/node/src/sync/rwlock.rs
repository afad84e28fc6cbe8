//! Readers-writer locks.

use crate::held_locks::Holding;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Object, ObjectKind, Request};
use gondwana_control::Awaited;
use gondwana_locks::lock as guard;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

/// What is done to a readers-writer lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwOperation {
    /// Lock for reading.
    Read,
    /// Lock for writing.
    Write,
}

/// The locks of threads that hold more than they have places for: by thread and lock, whether it is held for writing, and how
/// often.
pub(super) type MoreLocks = Mutex<BTreeMap<(u64, u64), (bool, u32)>>;

impl Node {
    /// Locks a readers-writer lock that rests here, or is shared, and that nobody holds against the caller; otherwise false.
    #[inline(always)]
    pub fn rwlock_at_hand(&'static self, lock: usize, operation: RwOperation) -> bool {
        let object = Object(lock as u64);
        let write = operation == RwOperation::Write;
        let (Some(entry), Some(thread)) =
            (self.sync.resting.at_hand_of(object.of_kind(ObjectKind::RwLock)), Thread::known())
        else {
            return false;
        };
        // The place first: what is locked must not be without one.
        if thread.locks.has_more() || !thread.locks.begin(lock as u64, write) {
            return false;
        }
        let locked = if write { entry.write() } else { entry.read() };
        if !locked {
            thread.locks.end(lock as u64);
        }
        locked
    }

    /// Unlocks a readers-writer lock that rests here, or is shared; otherwise false.
    #[inline(always)]
    pub fn rwlock_unlock_at_hand(&'static self, lock: usize) -> bool {
        let object = Object(lock as u64);
        let (Some(entry), Some(thread)) =
            (self.sync.resting.at_hand_of(object.of_kind(ObjectKind::RwLock)), Thread::known())
        else {
            return false;
        };
        let unlocked = match thread.locks.holding(lock as u64) {
            Holding::Nothing => false,
            Holding::Reading => entry.end_read(),
            Holding::Writing => entry.end_write(),
        };
        if unlocked {
            thread.locks.end(lock as u64);
        }
        unlocked
    }

    /// Locks a readers-writer lock; `attempt` fails instead of waiting. Readers pass writers that wait unless the lock
    /// `prefers_writers`, which is asked only if it matters.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn rwlock(
        &'static self,
        lock: usize,
        operation: RwOperation,
        attempt: bool,
        until: Option<Instant>,
        prefers_writers: impl Fn() -> bool,
    ) -> Result<(), i32> {
        let object = Object(lock as u64);
        let write = operation == RwOperation::Write;
        let entry = self.sync.resting.resting(object.of_kind(ObjectKind::RwLock));
        let at_hand = entry.is_some_and(|entry| if write { entry.write() } else { entry.read() });
        if !at_hand {
            let passes = match self.holding(object) {
                Holding::Writing if !attempt => return Err(libc::EDEADLK),
                holding => holding == Holding::Reading && !attempt || !prefers_writers(),
            };
            let request = |attempt| Request::RwLock { lock: object, write, attempt, passes };
            // A lock that nobody holds against the caller never times out, though others may wait before it.
            let at_once = until.is_some() && self.request(lock, request(true)).is_ok();
            if !at_once {
                let awaited = if write { Awaited::WriteLock } else { Awaited::ReadLock };
                self.request_until(object.of_kind(ObjectKind::RwLock), request(attempt), awaited, until)?;
            }
            self.acquire(Some(object));
        }
        self.begin_to_hold(object, write);
        Ok(())
    }

    /// A lock is destroyed, or made anew: the calling thread does not hold it any more.
    pub fn rwlock_forget(&'static self, lock: usize) {
        while self.holding(Object(lock as u64)) != Holding::Nothing && self.rwlock_unlock(lock).is_ok() {}
    }

    /// `pthread_rwlock_unlock`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn rwlock_unlock(&'static self, lock: usize) -> Result<(), i32> {
        let object = Object(lock as u64);
        let write = match self.holding(object) {
            Holding::Nothing => return Err(libc::EPERM),
            holding => holding == Holding::Writing,
        };
        self.end_holding(object);
        let entry = self.sync.resting.resting(object.of_kind(ObjectKind::RwLock));
        let at_hand = entry.is_some_and(|entry| if write { entry.end_write() } else { entry.end_read() });
        if at_hand {
            return Ok(());
        }
        self.request_released(object, Request::RwUnlock { lock: object, write }).map(|_| ())
    }

    #[inline]
    fn holding(&'static self, lock: Object) -> Holding {
        let thread = Thread::current(self);
        match thread.locks.holding(lock.0) {
            Holding::Nothing if thread.locks.has_more() => {
                let id = thread.id;
                let more = self.undisturbed(move || guard(&self.sync.more_locks).get(&(id, lock.0)).copied());
                more.map_or(
                    Holding::Nothing,
                    |(write, _)| {
                        if write { Holding::Writing } else { Holding::Reading }
                    },
                )
            }
            holding => holding,
        }
    }

    #[inline]
    fn begin_to_hold(&'static self, lock: Object, write: bool) {
        let thread = Thread::current(self);
        let is_elsewhere = thread.locks.has_more() && thread.locks.holding(lock.0) == Holding::Nothing;
        if !is_elsewhere && thread.locks.begin(lock.0, write) {
            return;
        }
        let id = thread.id;
        let is_new = self.undisturbed(move || {
            let mut more = guard(&self.sync.more_locks);
            let (_, times) = more.entry((id, lock.0)).or_insert((write, 0));
            *times += 1;
            *times == 1
        });
        if is_new {
            thread.locks.count_more(true);
        }
    }

    #[inline]
    fn end_holding(&'static self, lock: Object) {
        let thread = Thread::current(self);
        if thread.locks.holding(lock.0) != Holding::Nothing {
            return thread.locks.end(lock.0);
        }
        let id = thread.id;
        let is_last = self.undisturbed(move || {
            let mut more = guard(&self.sync.more_locks);
            let Some((_, times)) = more.get_mut(&(id, lock.0)) else { return false };
            *times -= 1;
            let is_last = *times == 0;
            if is_last {
                more.remove(&(id, lock.0));
            }
            is_last
        });
        if is_last {
            thread.locks.count_more(false);
        }
    }

    /// The locks that threads of this node hold, at most `most`, each with its writer or 0 and its readers among these threads.
    pub(crate) fn held_rwlocks(&'static self, most: usize) -> Vec<(u64, u64, Vec<u64>)> {
        let mut held = BTreeMap::<u64, (u64, Vec<u64>)>::new();
        let more = self.undisturbed(|| guard(&self.sync.more_locks).clone());
        let more = more.into_iter().map(|((thread, lock), (write, _))| (thread, lock, write));
        for (thread, lock, write) in self.notes.held_locks().chain(more) {
            let (writer, readers) = held.entry(lock).or_default();
            if write {
                *writer = thread;
            } else {
                readers.push(thread);
            }
        }
        held.into_iter().take(most).map(|(lock, (writer, readers))| (lock, writer, readers)).collect()
    }
}
