//! One condition, futex, semaphore or readers-writer lock on one node, as the threads of that node see it: what needs neither
//! another node nor waiting takes one atomic instruction. `tests/loom.rs` compiles this file over checked atomics.

use super::primitive::{AtomicU32, AtomicU64, Ordering, fence};

/// The node keeps the object: its threads may do everything, as long as none waits.
const OWNED: u64 = 1 << 63;
/// The node may do what does not change the object for others: lock it for reading, signal while nobody waits.
const SHARED: u64 = 1 << 62;
/// A thread of this node holds the lock for writing.
const WRITER: u64 = 1 << 32;
/// A semaphore's value, or how often threads of this node have locked for reading.
const COUNT: u64 = u32::MAX as u64;

/// What a resting object's word tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Rest {
    /// A semaphore's value, or how often threads of this node have locked for reading.
    pub count: u32,
    /// A thread of this node holds the lock for writing.
    pub writer: bool,
    /// Of a semaphore: its initialisation.
    pub stamp: u64,
}

/// An object on one node. Where nothing can be done without the node's lock, `word` is 0.
///
/// `word` becomes 0, and something else again, under the node's lock only.
#[derive(Debug, Default)]
pub struct Resting {
    word: AtomicU64,
    /// Changes only while `word` is 0.
    stamp: AtomicU64,
    /// What threads of this node did here, roughly: uses that meet may count as one.
    uses: AtomicU32,
}

impl Resting {
    /// `sem_post` of the semaphore initialised as `stamp`; false if that takes the slow path.
    #[inline]
    #[must_use]
    pub fn post(&self, stamp: u64) -> bool {
        /// The largest value of a semaphore.
        const MOST: u64 = i32::MAX as u64;
        self.change(|word| {
            (word & OWNED != 0 && self.is(stamp) && word & COUNT < MOST).then_some(word.wrapping_add(1))
        })
    }

    /// `sem_wait`, as [`Resting::post`].
    #[inline]
    #[must_use]
    pub fn take_one(&self, stamp: u64) -> bool {
        self.change(|word| {
            (word & OWNED != 0 && self.is(stamp) && word & COUNT > 0).then_some(word.wrapping_sub(1))
        })
    }

    /// Locks for reading, or false.
    #[inline]
    #[must_use]
    pub fn read(&self) -> bool {
        self.change(|word| {
            let permitted = word & (OWNED | SHARED) != 0 && word & WRITER == 0 && word & COUNT < COUNT;
            permitted.then_some(word.wrapping_add(1))
        })
    }

    /// Unlocks what a thread of this node has locked for reading, or false.
    #[inline]
    #[must_use]
    pub fn end_read(&self) -> bool {
        self.change(|word| (word & COUNT > 0).then_some(word.wrapping_sub(1)))
    }

    /// Locks for writing, or false.
    #[inline]
    #[must_use]
    pub fn write(&self) -> bool {
        self.change(|word| (word == OWNED).then_some(OWNED | WRITER))
    }

    /// Unlocks what a thread of this node has locked for writing, or false.
    #[inline]
    #[must_use]
    pub fn end_write(&self) -> bool {
        self.change(|word| (word & WRITER != 0).then_some(word & !WRITER))
    }

    /// True if no thread of any node waits for the condition or at the address, so that a signal wakes nobody.
    #[inline]
    #[must_use]
    pub fn nobody_waits(&self) -> bool {
        // What the caller has written before comes before this look: a thread that begins to wait looks for that after it has
        // taken the right to signal in vain from this node.
        fence(Ordering::SeqCst);
        let nobody = self.word.load(Ordering::Acquire) & (OWNED | SHARED) != 0;
        if nobody {
            self.use_once();
        }
        nobody
    }

    #[inline]
    fn change(&self, next: impl Fn(u64) -> Option<u64>) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        while let Some(new) = next(word) {
            match self.word.compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.use_once();
                    return true;
                }
                Err(found) => word = found,
            }
        }
        false
    }

    /// The semaphore that rests here: its value and its initialisation. Threads may be changing it.
    pub(super) fn semaphore(&self) -> Option<(u32, u64)> {
        let word = self.word.load(Ordering::Acquire);
        (word & OWNED != 0).then(|| ((word & COUNT) as u32, self.stamp.load(Ordering::Relaxed)))
    }

    #[inline]
    fn is(&self, stamp: u64) -> bool {
        self.stamp.load(Ordering::Relaxed) == stamp
    }

    #[inline]
    pub(super) fn use_once(&self) {
        self.uses.store(self.uses.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Uses since the last call.
    pub(super) fn take_uses(&self) -> u32 {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(0, Ordering::Relaxed);
        uses
    }

    /// Takes what rests here: threads take the slow path from now on.
    pub(super) fn take(&self) -> Option<Rest> {
        let word = self.word.swap(0, Ordering::AcqRel);
        // The other one of `nobody_waits`.
        fence(Ordering::SeqCst);
        (word != 0).then(|| Rest {
            count: (word & COUNT) as u32,
            writer: word & WRITER != 0,
            stamp: self.stamp.load(Ordering::Relaxed),
        })
    }

    /// An object rests here that the node keeps.
    pub(super) fn keep(&self, Rest { count, writer, stamp }: Rest) {
        self.stamp.store(stamp, Ordering::Relaxed);
        let writer = if writer { WRITER } else { 0 };
        self.word.store(OWNED | writer | u64::from(count), Ordering::Release);
    }

    /// The node may do what does not change the object for others.
    pub(super) fn share(&self) {
        self.word.store(SHARED, Ordering::Release);
    }
}

#[cfg(test)]
impl Resting {
    /// All that tells one from another.
    pub(super) fn parts(&self) -> (u64, u64, u32) {
        (
            self.word.load(Ordering::Relaxed),
            self.stamp.load(Ordering::Relaxed),
            self.uses.load(Ordering::Relaxed),
        )
    }

    pub(super) fn copy_from(&self, other: &Self) {
        let (word, stamp, uses) = other.parts();
        self.word.store(word, Ordering::Relaxed);
        self.stamp.store(stamp, Ordering::Relaxed);
        self.uses.store(uses, Ordering::Relaxed);
    }
}
