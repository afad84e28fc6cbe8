//! Mutexes: tokens that rest where they were used last.

use crate::clock::count_lock;
use crate::env::waiter_of;
use crate::wait_slots::{WaitSlot, event};
use crate::{Node, Thread};
use gondwana_coherence::Outcome;
use gondwana_coherence::sync::{Entry, Fast, Kind, Object, SyncError, Thread as ThreadId, TryOutcome};
use gondwana_control::Awaited;
use std::time::Instant;

impl Node {
    /// `pthread_mutex_init`.
    pub fn mutex_init(&'static self, mutex: usize) {
        // A mutex that no thread of this node used has nothing to forget here.
        if self.sync.lock_table.get(Object(mutex as u64)).is_some() {
            self.privately(move || {
                self.core().with_locks(|locks, env| locks.reset(Object(mutex as u64), env))
            });
        }
    }

    /// `pthread_mutex_destroy`; the error is an error number.
    ///
    /// # Errors
    /// `EBUSY` while a thread of this node holds it.
    pub fn mutex_destroy(&'static self, mutex: usize) -> Result<(), i32> {
        match self.sync.lock_table.get(Object(mutex as u64)) {
            Some(entry) if entry.is_locked() => Err(libc::EBUSY),
            _ => Ok(()),
        }
    }

    /// True if the calling thread holds it.
    pub fn holds_mutex(&'static self, mutex: usize) -> bool {
        let (thread, _) = self.thread_number();
        self.sync.lock_table.get(Object(mutex as u64)).is_some_and(|entry| entry.is_held_by(thread))
    }

    /// `pthread_mutex_lock` of a mutex that rests here, free; otherwise false. What is not shared never rests here.
    ///
    /// Most locking is this. It calls nothing, so that the function that it becomes part of has no registers to save.
    #[inline(always)]
    pub fn mutex_lock_at_hand(&'static self, mutex: usize) -> bool {
        let (Some(entry), Some(thread)) =
            (self.sync.lock_table.at_hand(Object(mutex as u64)), Thread::known())
        else {
            return false;
        };
        let locked = entry.lock_at_hand(ThreadId(thread.id));
        if locked {
            count_lock();
        }
        locked
    }

    /// `pthread_mutex_unlock` of a mutex that the calling thread has locked once, while nobody waits for it; otherwise
    /// false.
    #[inline(always)]
    pub fn mutex_unlock_at_hand(&'static self, mutex: usize) -> bool {
        match (self.sync.lock_table.at_hand(Object(mutex as u64)), Thread::known()) {
            (Some(entry), Some(thread)) => entry.unlock_at_hand(ThreadId(thread.id)),
            _ => false,
        }
    }

    /// The entry of a mutex, which is made with its locks where no fault can stop the thread midway.
    #[inline]
    fn lock_entry(&'static self, mutex: Object) -> &'static Entry {
        self.sync
            .lock_table
            .get(mutex)
            .unwrap_or_else(|| self.undisturbed(move || self.sync.lock_table.entry(mutex)))
    }

    /// `pthread_mutex_lock`, or the timed forms of it. `kind` is asked only if it matters.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn mutex_lock(
        &'static self,
        mutex: usize,
        kind: impl Fn() -> Kind,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let (thread, slot) = self.thread_number();
        let object = Object(mutex as u64);
        if self.lock_entry(object).fast_lock(thread, &kind).map_err(SyncError::code)? == Fast::Slow {
            self.privately(move || self.mutex_lock_slowly(object, thread, slot, until))?;
        }
        count_lock();
        Ok(())
    }

    fn mutex_lock_slowly(
        &'static self,
        object: Object,
        thread: ThreadId,
        slot: WaitSlot,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let _noted = self.note_wait(slot, Awaited::Mutex, object.0, until);
        self.waiting.slots.arm(slot, event::LOCKED);
        let outcome = self.core().with_locks(|locks, env| locks.lock(object, thread, waiter_of(slot), env));
        if outcome == Outcome::Done || self.wait(slot, event::LOCKED, until) != 0 {
            return Ok(());
        }
        if self.core().with_locks(|locks, _| locks.cancel(object, waiter_of(slot))) {
            return Err(libc::ETIMEDOUT);
        }
        self.wait(slot, event::LOCKED, None);
        Ok(())
    }

    /// `pthread_mutex_trylock`.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn mutex_try_lock(&'static self, mutex: usize, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, slot) = self.thread_number();
        let object = Object(mutex as u64);
        let entry = self.lock_entry(object);
        if entry.fast_try_lock(thread, &kind).map_err(SyncError::code)? == Fast::Slow
            && !self.privately(move || self.mutex_try_slowly(object, thread, slot))
        {
            return Err(libc::EBUSY);
        }
        count_lock();
        Ok(())
    }

    fn mutex_try_slowly(&'static self, object: Object, thread: ThreadId, slot: WaitSlot) -> bool {
        self.waiting.slots.arm(slot, event::LOCKED);
        let outcome =
            self.core().with_locks(|locks, env| locks.try_lock(object, thread, waiter_of(slot), env));
        match outcome {
            TryOutcome::Acquired => true,
            TryOutcome::Busy => false,
            TryOutcome::Wait => self.wait(slot, event::LOCKED, None) & event::GRANTED != 0,
        }
    }

    /// `pthread_mutex_unlock`.
    ///
    /// # Errors
    /// `EPERM` where the C library gives it.
    pub fn mutex_unlock(&'static self, mutex: usize, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        let object = Object(mutex as u64);
        match self.lock_entry(object).fast_unlock(thread, &kind).map_err(SyncError::code)? {
            Fast::Done => Ok(()),
            Fast::Slow => self
                .privately(move || self.core().with_locks(|locks, env| locks.unlock(object, env)))
                .map_err(SyncError::code),
        }
    }
}
