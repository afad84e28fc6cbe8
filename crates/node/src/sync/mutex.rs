//! Mutexes: tokens that rest where they were used last. Those that nodes of one computer fight for become common.

use super::common_mutex::CommonMutex;
use crate::clock::count_lock;
use crate::env::waiter_of;
use crate::wait_slots::{WaitSlot, event};
use crate::{Node, Thread};
use gondwana_coherence::Outcome;
use gondwana_coherence::sync::{Entry, Fast, Kind, Object, SyncError, Thread as ThreadId, TryOutcome};
use gondwana_control::Awaited;
use std::cell::Cell;
use std::time::Instant;

impl Node {
    /// `pthread_mutex_init`.
    pub fn mutex_init(&'static self, mutex: usize) {
        let place = self.sync.common_mutexes.as_ref().and_then(|common| common.get(Object(mutex as u64)));
        if let Some(common) = place {
            // Also if no thread of this node has used the one that was there before.
            common.free();
        } else if self.sync.lock_table.get(Object(mutex as u64)).is_some() {
            // A mutex that no thread of this node used has nothing to forget here.
            self.privately(move || {
                self.core().with_locks(|locks, env| locks.reset(Object(mutex as u64), env))
            });
        }
    }

    /// `pthread_mutex_destroy`; the error is an error number.
    ///
    /// # Errors
    /// `EBUSY` while a thread of this node holds it, or any thread if it is common.
    pub fn mutex_destroy(&'static self, mutex: usize) -> Result<(), i32> {
        if self.common_mutex(Object(mutex as u64)).is_some_and(|common| !common.is_free()) {
            return Err(libc::EBUSY);
        }
        match self.sync.lock_table.get(Object(mutex as u64)) {
            Some(entry) if entry.is_locked() => Err(libc::EBUSY),
            _ => Ok(()),
        }
    }

    /// True if the calling thread holds it.
    pub fn holds_mutex(&'static self, mutex: usize) -> bool {
        let (thread, _) = self.thread_number();
        let object = Object(mutex as u64);
        self.common_mutex(object).is_some_and(|common| common.is_held_by(thread))
            || self.sync.lock_table.get(object).is_some_and(|entry| entry.is_held_by(thread))
    }

    /// The mutex, if it is common.
    fn common_mutex(&'static self, mutex: Object) -> Option<CommonMutex> {
        let entry = self.sync.lock_table.get(mutex).filter(|entry| entry.is_common())?;
        let common = self.sync.common_mutexes.as_ref()?;
        if let Some(place) = entry.place() {
            return common.at(place);
        }
        let found = common.get(mutex)?;
        entry.note_place(common.index(found));
        Some(found)
    }

    /// A common mutex that this node has used before.
    #[inline(always)]
    fn common_at_hand(&'static self, entry: &Entry) -> Option<CommonMutex> {
        self.sync.common_mutexes.as_ref()?.at(entry.place()?)
    }

    /// Locks a common mutex, if it is at hand and free.
    #[inline(never)]
    fn lock_common_at_hand(&'static self, entry: &Entry, object: Object, thread: ThreadId) -> bool {
        let taken = self.common_at_hand(entry).filter(|mutex| mutex.try_take());
        let Some(mutex) = taken else { return false };
        self.own_common(mutex, object, thread);
        true
    }

    /// `pthread_mutex_lock` of a mutex that rests here, free, or is common and free; otherwise false. What is not shared is neither.
    ///
    /// Most locking is this. It calls nothing where the mutex rests, so that the function that it becomes part of has no registers to save.
    #[inline(always)]
    pub fn mutex_lock_at_hand(&'static self, mutex: usize) -> bool {
        let (Some(entry), Some(thread)) =
            (self.sync.lock_table.at_hand(Object(mutex as u64)), Thread::known())
        else {
            return false;
        };
        if entry.is_common() {
            return self.lock_common_at_hand(entry, Object(mutex as u64), ThreadId(thread.id));
        }
        let locked = entry.lock_at_hand(ThreadId(thread.id));
        if locked {
            count_lock();
        }
        locked
    }

    /// `pthread_mutex_unlock` of a mutex that the calling thread has locked once, while nobody waits for it and, if it is common, there is
    /// nothing to release; otherwise false.
    #[inline(always)]
    pub fn mutex_unlock_at_hand(&'static self, mutex: usize) -> bool {
        match (self.sync.lock_table.at_hand(Object(mutex as u64)), Thread::known()) {
            (Some(entry), Some(thread)) => {
                let thread = ThreadId(thread.id);
                entry.unlock_at_hand(thread) || entry.is_common() && self.unlock_common_at_hand(entry, thread)
            }
            _ => false,
        }
    }

    #[inline(never)]
    fn unlock_common_at_hand(&'static self, entry: &Entry, thread: ThreadId) -> bool {
        let held = self.common_at_hand(entry).filter(|mutex| mutex.is_held_by(thread) && !mutex.is_deep());
        let Some(mutex) = held else { return false };
        let is_released = self.is_sequentially_consistent() || self.has_released();
        if is_released {
            mutex.free();
        }
        is_released
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
        let entry = self.lock_entry(object);
        if !entry.is_common()
            && (entry.fast_lock(thread, &kind).map_err(SyncError::code)? == Fast::Done
                || self.privately(move || self.mutex_lock_slowly(object, thread, slot, until))?)
        {
            count_lock();
            return Ok(());
        }
        self.lock_common(object, kind, until)
    }

    /// Locks a common mutex.
    #[inline(never)]
    fn lock_common(
        &'static self,
        object: Object,
        kind: impl Fn() -> Kind,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let (thread, slot) = self.thread_number();
        let mutex = self.common_mutex(object).ok_or(libc::EINVAL)?;
        if !mutex.try_take() {
            if mutex.is_held_by(thread) {
                match kind() {
                    Kind::Normal => {}
                    Kind::Recursive if mutex.deepen() => return Ok(()),
                    Kind::Recursive => return Err(libc::EAGAIN),
                    Kind::ErrorCheck => return Err(libc::EDEADLK),
                }
            }
            if !mutex.take_soon() {
                let _noted = self.note_wait(slot, Awaited::Mutex, object.0, until);
                self.threads.begin_wait();
                let taken = self.privately(move || self.poll_for_common(mutex))
                    || self.threads.asleep(|| mutex.take(until));
                self.threads.end_wait();
                if !taken {
                    return Err(libc::ETIMEDOUT);
                }
            }
        }
        self.own_common(mutex, object, thread);
        Ok(())
    }

    /// Receives messages until a common mutex is free, as threads that wait for tokens do, and takes it then. False if that has taken too
    /// long. Who sleeps is woken later than the mutex becomes free.
    fn poll_for_common(&'static self, mutex: CommonMutex) -> bool {
        let taken = Cell::new(false);
        if let Some(_poller) = self.poll() {
            let spin = &self.waiting.mutexes;
            self.receive_while_idle(spin, || {
                taken.set(mutex.is_free() && mutex.try_take());
                !taken.get()
            });
            if taken.get() {
                spin.learn(true);
            }
        }
        taken.get()
    }

    /// The calling thread has taken a common mutex, and sees what its former holders have written.
    fn own_common(&'static self, mutex: CommonMutex, object: Object, thread: ThreadId) {
        let before = mutex.own(thread, self.me);
        if before != Some(self.me) && !self.is_sequentially_consistent() {
            self.acquire(Some(object));
        }
        count_lock();
    }

    /// Unlocks a common mutex.
    #[inline(never)]
    fn unlock_common(&'static self, object: Object, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        let mutex = self.common_mutex(object).ok_or(libc::EINVAL)?;
        if !mutex.is_held_by(thread) && (kind() != Kind::Normal || mutex.is_free()) {
            return Err(libc::EPERM);
        }
        if mutex.undeepen() {
            return Ok(());
        }
        if !self.is_sequentially_consistent() {
            self.release_written(Some(object));
        }
        mutex.free();
        Ok(())
    }

    /// False if the mutex is common.
    fn mutex_lock_slowly(
        &'static self,
        object: Object,
        thread: ThreadId,
        slot: WaitSlot,
        until: Option<Instant>,
    ) -> Result<bool, i32> {
        let _noted = self.note_wait(slot, Awaited::Mutex, object.0, until);
        self.waiting.slots.arm(slot, event::LOCKED);
        let outcome = self.core().with_locks(|locks, env| locks.lock(object, thread, waiter_of(slot), env));
        if outcome == Outcome::Done {
            return Ok(true);
        }
        let mut events = self.wait_shortly(slot, event::LOCKED, until);
        if events == 0 {
            if self.core().with_locks(|locks, _| locks.cancel(object, waiter_of(slot))) {
                return Err(libc::ETIMEDOUT);
            }
            events = self.wait(slot, event::LOCKED, None);
        }
        Ok(events & event::COMMON == 0)
    }

    /// `pthread_mutex_trylock`.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn mutex_try_lock(&'static self, mutex: usize, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, slot) = self.thread_number();
        let object = Object(mutex as u64);
        let entry = self.lock_entry(object);
        if !entry.is_common() {
            let fast = entry.fast_try_lock(thread, &kind).map_err(SyncError::code)?;
            let had = match fast {
                Fast::Done => Some(true),
                Fast::Slow => self.privately(move || self.mutex_try_slowly(object, thread, slot)),
            };
            match had {
                Some(true) => {
                    count_lock();
                    return Ok(());
                }
                Some(false) => return Err(libc::EBUSY),
                None => {}
            }
        }
        let mutex = self.common_mutex(object).ok_or(libc::EINVAL)?;
        if mutex.try_take() {
            self.own_common(mutex, object, thread);
            return Ok(());
        }
        let deeper = mutex.is_held_by(thread) && kind() == Kind::Recursive;
        if deeper && mutex.deepen() { Ok(()) } else { Err(if deeper { libc::EAGAIN } else { libc::EBUSY }) }
    }

    /// Whether the thread has it; `None` if the mutex is common.
    fn mutex_try_slowly(&'static self, object: Object, thread: ThreadId, slot: WaitSlot) -> Option<bool> {
        self.waiting.slots.arm(slot, event::LOCKED);
        let outcome =
            self.core().with_locks(|locks, env| locks.try_lock(object, thread, waiter_of(slot), env));
        match outcome {
            TryOutcome::Acquired => Some(true),
            TryOutcome::Busy => Some(false),
            TryOutcome::Wait => {
                let events = self.wait(slot, event::LOCKED, None);
                (events & event::COMMON == 0).then_some(events & event::GRANTED != 0)
            }
        }
    }

    /// `pthread_mutex_unlock`.
    ///
    /// # Errors
    /// `EPERM` where the C library gives it.
    pub fn mutex_unlock(&'static self, mutex: usize, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        let object = Object(mutex as u64);
        let entry = self.lock_entry(object);
        if entry.is_common() {
            return self.unlock_common(object, kind);
        }
        match entry.fast_unlock(thread, &kind).map_err(SyncError::code)? {
            Fast::Done => Ok(()),
            Fast::Slow => self
                .privately(move || self.core().with_locks(|locks, env| locks.unlock(object, env)))
                .map_err(SyncError::code),
        }
    }

    /// Unlocks a mutex that a thread of this node holds, for a thread of another node, which has released what it wrote. False if none
    /// holds it.
    pub fn mutex_unlock_for_another(&'static self, mutex: usize) -> bool {
        let object = Object(mutex as u64);
        let entry = self.lock_entry(object);
        let is_held = if entry.is_common() {
            self.common_mutex(object).is_some_and(|mutex| !mutex.is_free())
        } else {
            entry.holder().is_some()
        };
        if is_held && !self.is_sequentially_consistent() {
            // The next holder may be of this node, without an acquire.
            self.acquire(Some(object));
        }
        is_held && self.mutex_unlock(mutex, || Kind::Normal).is_ok()
    }
}
