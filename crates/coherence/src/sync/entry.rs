//! One mutex on one node, as the threads of that node see it: locking and unlocking while no other thread waits take one
//! atomic instruction each. `tests/loom.rs` compiles this file over checked atomics.

use super::primitive::{AtomicU32, AtomicU64, Ordering};
use super::{SyncError, Thread};

/// What a mutex does when its holder locks it again, or somebody else unlocks it.
///
/// Not kept with the token: C++ constructs a mutex over freed memory without any call, so only the object itself
/// knows, and it is read only when the answer matters (then this thread holds the mutex, or errs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `PTHREAD_MUTEX_NORMAL`: locking again waits for ever; anybody of the holder's node can unlock.
    Normal,
    /// `PTHREAD_MUTEX_RECURSIVE`: counts.
    Recursive,
    /// `PTHREAD_MUTEX_ERRORCHECK`: both are errors.
    ErrorCheck,
}

/// Whether the fast path was enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fast {
    /// The operation is complete.
    Done,
    /// The caller must call the same operation of [`Locks`](super::Locks) under the node's lock.
    Slow,
}

/// Where the token of a mutex is, seen from one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(super) enum Word {
    /// Nobody here used the mutex yet: `Free` on its manager's node, elsewhere `Absent`. Must be 0.
    New = 0,
    /// Here, and nobody holds it.
    Free,
    /// A thread of this node holds it and may unlock on the fast path.
    Held,
    /// A thread of this node holds it, and somebody waits: unlocking takes the slow path.
    HeldQueued,
    /// The node flushes before the token leaves.
    Leaving,
    /// At another node or on its way.
    Absent,
    /// Here, and nobody holds it. Another node waits, but the token stays for the next uses of this one: locking takes the slow
    /// path.
    FreeQueued,
    /// All nodes lock and unlock it in memory that they have in common: see [`LockGrant::Common`](super::LockGrant::Common).
    Common,
}

impl Word {
    fn from_raw(raw: u32) -> Self {
        match raw {
            0 => Self::New,
            1 => Self::Free,
            2 => Self::Held,
            3 => Self::HeldQueued,
            4 => Self::Leaving,
            6 => Self::FreeQueued,
            7 => Self::Common,
            _ => Self::Absent,
        }
    }
}

/// More than any depth.
const EARLY: u32 = u32::MAX;

/// One mutex on one node. A mutex nobody used is all zero.
///
/// `word` changes from `Free` to `Held` and back without the node's lock, in every other way only under it.
#[derive(Debug, Default)]
pub struct Entry {
    word: AtomicU32,
    /// How often the owner has locked it; touched by the owner only. [`EARLY`] if the token came early and no thread has used it.
    depth: AtomicU32,
    /// The holding thread, or 0. A thread finds its own number here only if it wrote it (or was handed the
    /// mutex), so comparing needs no ordering.
    owner: AtomicU64,
    /// How often the token has left this node.
    departures: AtomicU32,
    /// Of a common mutex: one more than its place in common memory, or 0 while this node has not looked for it.
    place: AtomicU32,
}

impl Entry {
    /// Locks a mutex that is here and that nobody holds; otherwise false.
    #[inline]
    #[must_use]
    pub fn lock_at_hand(&self, thread: Thread) -> bool {
        let free = self.transition(Word::Free, Word::Held);
        if free {
            self.own(thread);
        }
        free
    }

    /// Unlocks a mutex that the thread has locked once, unless somebody waits for it; then, and otherwise, false.
    #[inline]
    #[must_use]
    pub fn unlock_at_hand(&self, thread: Thread) -> bool {
        if !self.is_held_by(thread) || self.depth.load(Ordering::Relaxed) != 1 {
            return false;
        }
        // Before the word, as in `fast_unlock`. Until the word changes, the entry is this thread's.
        self.disown();
        let free = self.transition(Word::Held, Word::Free);
        if !free {
            self.own(thread);
        }
        free
    }

    /// `pthread_mutex_lock`, as far as it needs no other node and no waiting. `kind` is asked only if the thread
    /// holds the mutex already.
    ///
    /// # Errors
    /// [`SyncError::Deadlock`]: held by this thread, errorcheck. [`SyncError::Exhausted`]: locked too often.
    #[inline]
    pub fn fast_lock(&self, thread: Thread, kind: impl FnOnce() -> Kind) -> Result<Fast, SyncError> {
        // Looked at first: most callers have just seen it fail, and trying costs as much as it does to succeed.
        if self.word() == Word::Free && self.lock_at_hand(thread) {
            return Ok(Fast::Done);
        }
        if !self.is_held_by(thread) {
            return Ok(Fast::Slow);
        }
        match kind() {
            Kind::Normal => Ok(Fast::Slow),
            Kind::Recursive => self.deepen(),
            Kind::ErrorCheck => Err(SyncError::Deadlock),
        }
    }

    /// `pthread_mutex_trylock`, as far as this node can tell alone.
    ///
    /// # Errors
    /// [`SyncError::Busy`]: a thread of this node holds it. [`SyncError::Exhausted`]: locked too often.
    #[inline]
    pub fn fast_try_lock(&self, thread: Thread, kind: impl FnOnce() -> Kind) -> Result<Fast, SyncError> {
        if self.lock_at_hand(thread) {
            return Ok(Fast::Done);
        }
        if self.is_held_by(thread) && kind() == Kind::Recursive {
            return self.deepen();
        }
        if self.is_locked() { Err(SyncError::Busy) } else { Ok(Fast::Slow) }
    }

    /// `pthread_mutex_unlock`, as far as nobody waits. `kind` is asked only if the thread does not hold the
    /// mutex.
    ///
    /// # Errors
    /// [`SyncError::NotOwner`]: recursive or errorcheck, and this thread does not hold it.
    #[inline]
    pub fn fast_unlock(&self, thread: Thread, kind: impl FnOnce() -> Kind) -> Result<Fast, SyncError> {
        if self.is_held_by(thread) {
            let depth = self.depth.load(Ordering::Relaxed);
            if depth > 1 {
                self.depth.store(depth - 1, Ordering::Relaxed);
                return Ok(Fast::Done);
            }
        } else if kind() != Kind::Normal {
            return Err(SyncError::NotOwner);
        }
        // Before the word: afterwards the entry may be another thread's.
        self.disown();
        Ok(if self.transition(Word::Held, Word::Free) { Fast::Done } else { Fast::Slow })
    }

    /// True if this very thread holds the mutex.
    #[inline]
    #[must_use]
    pub fn is_held_by(&self, thread: Thread) -> bool {
        self.owner.load(Ordering::Relaxed) == thread.0
    }

    /// The thread of this node that holds the mutex, as it was at some time during the call.
    #[must_use]
    pub fn holder(&self) -> Option<Thread> {
        let owner = self.owner.load(Ordering::Relaxed);
        (owner != 0 && self.is_locked()).then_some(Thread(owner))
    }

    /// True if all nodes lock and unlock the mutex in memory that they have in common, and not here.
    #[inline]
    #[must_use]
    pub fn is_common(&self) -> bool {
        self.word() == Word::Common
    }

    /// Where a common mutex is in common memory, if this node has noted that.
    #[inline]
    #[must_use]
    pub fn place(&self) -> Option<u32> {
        self.place.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes where a common mutex is, for good.
    pub fn note_place(&self, place: u32) {
        self.place.store(place + 1, Ordering::Relaxed);
    }

    /// The token leaves; returns how often it has, with this time.
    pub(super) fn depart(&self) -> u32 {
        let before = self.departures.load(Ordering::Relaxed);
        self.departures.store(before.saturating_add(1), Ordering::Relaxed);
        before.saturating_add(1)
    }

    /// The token has come, which no thread has waited for.
    pub(super) fn came_early(&self) {
        self.depth.store(EARLY, Ordering::Relaxed);
    }

    /// True if the token came early and no thread has used it.
    pub(super) fn is_unused(&self) -> bool {
        self.depth.load(Ordering::Relaxed) == EARLY
    }

    /// True if a thread of this node holds the mutex.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self.word(), Word::Held | Word::HeldQueued)
    }

    fn deepen(&self) -> Result<Fast, SyncError> {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth + 1 == EARLY {
            return Err(SyncError::Exhausted);
        }
        self.depth.store(depth + 1, Ordering::Relaxed);
        Ok(Fast::Done)
    }

    pub(super) fn word(&self) -> Word {
        Word::from_raw(self.word.load(Ordering::Acquire))
    }

    pub(super) fn set(&self, word: Word) {
        self.word.store(word as u32, Ordering::Release);
    }

    #[inline]
    pub(super) fn transition(&self, from: Word, to: Word) -> bool {
        self.word.compare_exchange(from as u32, to as u32, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(super) fn own(&self, thread: Thread) {
        self.owner.store(thread.0, Ordering::Relaxed);
        self.depth.store(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn disown(&self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Entry {
    /// Word, owner and depth: all that tells one entry from another.
    pub(super) fn parts(&self) -> (Word, u64, u32) {
        (self.word(), self.owner.load(Ordering::Relaxed), self.depth.load(Ordering::Relaxed))
    }

    pub(super) fn departures(&self) -> u32 {
        self.departures.load(Ordering::Relaxed)
    }

    pub(super) fn copy_from(&self, other: &Self) {
        self.departures.store(other.departures(), Ordering::Relaxed);
        let (word, owner, depth) = other.parts();
        self.set(word);
        self.owner.store(owner, Ordering::Relaxed);
        self.depth.store(depth, Ordering::Relaxed);
    }
}
