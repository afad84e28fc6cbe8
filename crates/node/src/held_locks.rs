//! The readers-writer locks that each thread holds. Their states count threads by nodes; which threads those are, only the threads
//! know: to unlock, to lock again, and to tell others who ask.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// So many locks a thread can hold without the list that all share.
const MOST: usize = 6;

/// Instead of how often a lock is held for reading: it is held for writing.
const WRITING: u32 = u32::MAX;

/// How a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// Not.
    Nothing,
    /// For reading, once or more often.
    Reading,
    /// For writing.
    Writing,
}

#[derive(Default)]
struct Place {
    /// Its address; 0 if the place is free.
    lock: AtomicU64,
    /// How often, or [`WRITING`].
    times: AtomicU32,
}

/// Those of one thread, which alone changes them; others look at them at any time. All bytes zero is none.
#[derive(Default)]
pub(crate) struct HeldLocks {
    places: [Place; MOST],
    /// How many locks are not among the places.
    more: AtomicU32,
}

impl HeldLocks {
    fn place(&self, lock: u64) -> Option<&Place> {
        self.places.iter().find(|place| place.lock.load(Ordering::Relaxed) == lock)
    }

    /// How the calling thread, whose locks these are, holds a lock, as far as the places know.
    #[inline]
    pub(crate) fn holding(&self, lock: u64) -> Holding {
        match self.place(lock).map(|place| place.times.load(Ordering::Relaxed)) {
            None => Holding::Nothing,
            Some(WRITING) => Holding::Writing,
            Some(_) => Holding::Reading,
        }
    }

    /// The thread has locked; false if that cannot be noted in a place.
    #[inline]
    pub(crate) fn begin(&self, lock: u64, write: bool) -> bool {
        if let Some(place) = self.place(lock) {
            // Of a lock that is held for writing there is no more.
            let times = place.times.load(Ordering::Relaxed);
            let more = times < WRITING - 1 && !write;
            if more {
                place.times.store(times + 1, Ordering::Relaxed);
            }
            return more;
        }
        let Some(place) = self.place(0) else { return false };
        place.times.store(if write { WRITING } else { 1 }, Ordering::Relaxed);
        place.lock.store(lock, Ordering::Release);
        true
    }

    /// The thread has unlocked once what it holds in a place.
    #[inline]
    pub(crate) fn end(&self, lock: u64) {
        let Some(place) = self.place(lock) else { return };
        match place.times.load(Ordering::Relaxed) {
            1 | WRITING => place.lock.store(0, Ordering::Release),
            times => place.times.store(times - 1, Ordering::Relaxed),
        }
    }

    /// The number of locks that are not among the places changes.
    pub(crate) fn count_more(&self, begins: bool) {
        if begins {
            self.more.fetch_add(1, Ordering::Relaxed);
        } else {
            self.more.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// True if some locks are not among the places.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.more.load(Ordering::Relaxed) != 0
    }

    /// The locks in places, and whether they are held for writing, while their thread goes on.
    pub(crate) fn known(&self) -> impl Iterator<Item = (u64, bool)> {
        self.places.iter().filter_map(|place| {
            let lock = place.lock.load(Ordering::Acquire);
            (lock != 0).then(|| (lock, place.times.load(Ordering::Relaxed) == WRITING))
        })
    }

    /// Another thread gets the places.
    pub(crate) fn clear(&self) {
        self.places.iter().for_each(|place| place.lock.store(0, Ordering::Relaxed));
        self.more.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_held_until_they_are_unlocked_as_often() {
        let held = HeldLocks::default();
        assert_eq!(held.holding(8), Holding::Nothing);
        assert!(held.begin(8, false) && held.begin(16, true) && held.begin(8, false));
        assert_eq!((held.holding(8), held.holding(16)), (Holding::Reading, Holding::Writing));
        assert_eq!(held.known().collect::<Vec<_>>(), [(8, false), (16, true)]);
        held.end(16);
        held.end(8);
        assert_eq!((held.holding(8), held.holding(16)), (Holding::Reading, Holding::Nothing));
        held.end(8);
        assert_eq!(held.known().count(), 0);
    }

    #[test]
    fn what_has_no_place_is_not_taken() {
        let held = HeldLocks::default();
        assert!((1..=MOST as u64).all(|lock| held.begin(lock, false)));
        assert!(!held.begin(99, false) && held.begin(1, false));
        held.end(2);
        assert!(held.begin(99, true));
        held.count_more(true);
        assert!(held.has_more());
        held.clear();
        assert!(!held.has_more() && held.known().count() == 0);
    }
}
