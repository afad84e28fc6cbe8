//! Mutexes that nodes of one computer take from each other again and again: they lock and unlock them in memory that they all map,
//! and wait there by the kernel's futexes.
//!
//! A mutex is known by its address; where it is in the program's memory, it is left alone. It becomes common when its token leaves a
//! node (`coherence::sync::LockGrant::Common`), and stays so.

use gondwana_coherence::sync::{Object, Thread};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Words of a mutex: half a cache line.
const WORDS: usize = 4;

/// Places in which a mutex may be found.
const WINDOW: usize = 32;

/// The values of a state: nobody holds the mutex; somebody does; and others may sleep until it is free.
const FREE: u64 = 0;
const HELD: u64 = 1;
const AWAITED: u64 = 2;

/// The part of the last word that counts how often the holder has locked the mutex.
const DEPTH: u64 = (1 << 32) - 1;

/// How often a thread looks whether the mutex is free before it sleeps: for about as long as it takes to wake one.
const LOOKS: u32 = 100;

/// The common mutexes of a run.
pub(crate) struct CommonMutexes(&'static [AtomicU64]);

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct CommonMutex(&'static [AtomicU64]);

impl CommonMutexes {
    /// In memory that all nodes map, and that is zero at first.
    pub(crate) fn new(words: &'static [AtomicU64]) -> Self {
        Self(words)
    }

    /// A mutex, which gets a place if it has none; `None` if there is none left.
    pub(crate) fn place(&self, object: Object) -> Option<CommonMutex> {
        self.places(object).find(|mutex| {
            let found = mutex.0[0].compare_exchange(0, object.0, Ordering::AcqRel, Ordering::Acquire);
            found.map_or_else(|found| found == object.0, |_| true)
        })
    }

    /// The mutex that has this [place](CommonMutexes::index).
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<CommonMutex> {
        let start = index as usize * WORDS;
        self.0.get(start..start + WORDS).map(CommonMutex)
    }

    /// The number of a mutex's place.
    pub(crate) fn index(&self, mutex: CommonMutex) -> u32 {
        let bytes = mutex.0.as_ptr() as usize - self.0.as_ptr() as usize;
        u32::try_from(bytes / size_of_val(mutex.0)).expect("there are fewer places")
    }

    /// A mutex that has a place.
    pub(crate) fn get(&self, object: Object) -> Option<CommonMutex> {
        // No place is ever given back, so that none is behind an empty one.
        let mut keys = self.places(object).map(|mutex| (mutex, mutex.0[0].load(Ordering::Acquire)));
        keys.find(|(_, key)| [0, object.0].contains(key)).filter(|(_, key)| *key != 0).map(|(mutex, _)| mutex)
    }

    fn places(&self, object: Object) -> impl Iterator<Item = CommonMutex> {
        let places = self.0.len() / WORDS;
        let hash = to_usize((object.0 ^ object.0 >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32);
        let words = self.0;
        (0..WINDOW).map(move |step| {
            let start = (hash + step) % places * WORDS;
            CommonMutex(&words[start..start + WORDS])
        })
    }
}

impl CommonMutex {
    fn owner(self) -> &'static AtomicU64 {
        &self.0[1]
    }

    fn state(self) -> &'static AtomicU64 {
        &self.0[2]
    }

    /// How often the holder has locked it, and one more than the number of its node in the upper half.
    fn held(self) -> &'static AtomicU64 {
        &self.0[3]
    }

    /// Takes the mutex if it is free.
    pub(crate) fn try_take(self) -> bool {
        self.state().compare_exchange(FREE, HELD, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Looks for a moment whether the mutex becomes free, and takes it then.
    pub(crate) fn take_soon(self) -> bool {
        (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            self.is_free() && self.try_take()
        })
    }

    /// Sleeps until the thread has the mutex; false if the time is over first.
    pub(crate) fn take(self, until: Option<Instant>) -> bool {
        while self.state().swap(AWAITED, Ordering::AcqRel) != FREE {
            let waited = super::futex::wait_in_kernel(self.futex(), u32::MAX, 2, until);
            if waited == Err(libc::ETIMEDOUT) {
                return false;
            }
        }
        true
    }

    /// The mutex is the thread's, of this node. Returns the node that has had it before, if any.
    pub(crate) fn own(self, thread: Thread, node: NodeId) -> Option<NodeId> {
        self.owner().store(thread.0, Ordering::Relaxed);
        let before = self.held().load(Ordering::Relaxed) >> 32;
        self.held().store((u64::from(node.0) + 1) << 32 | 1, Ordering::Relaxed);
        u16::try_from(before).ok().and_then(|before| before.checked_sub(1)).map(NodeId)
    }

    pub(crate) fn is_held_by(self, thread: Thread) -> bool {
        self.owner().load(Ordering::Relaxed) == thread.0
    }

    pub(crate) fn is_free(self) -> bool {
        self.state().load(Ordering::Relaxed) == FREE
    }

    /// The thread of a node that holds it, as it was at some time during the call.
    pub(crate) fn holder_on(self, node: NodeId) -> Option<Thread> {
        let (held, owner) = (self.held().load(Ordering::Relaxed), self.owner().load(Ordering::Relaxed));
        (owner != 0 && held >> 32 == u64::from(node.0) + 1 && !self.is_free()).then_some(Thread(owner))
    }

    /// The holder locks it once more; false if it has too often.
    pub(crate) fn deepen(self) -> bool {
        let held = self.held().load(Ordering::Relaxed);
        let possible = held & DEPTH != DEPTH;
        if possible {
            self.held().store(held + 1, Ordering::Relaxed);
        }
        possible
    }

    /// True if the holder has locked it more often than it has unlocked it since.
    pub(crate) fn is_deep(self) -> bool {
        self.held().load(Ordering::Relaxed) & DEPTH > 1
    }

    /// The holder unlocks it; true if it has locked it more often.
    pub(crate) fn undeepen(self) -> bool {
        let deep = self.is_deep();
        if deep {
            self.held().store(self.held().load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
        deep
    }

    /// Nobody holds it any more. What its holder has written is released.
    pub(crate) fn free(self) {
        self.owner().store(0, Ordering::Relaxed);
        if self.state().swap(FREE, Ordering::AcqRel) == AWAITED {
            super::futex::wake_in_kernel(self.futex(), 1, u32::MAX);
        }
    }

    /// The address of the lower half of the state.
    fn futex(self) -> usize {
        std::ptr::from_ref(self.state()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutexes(places: usize) -> CommonMutexes {
        CommonMutexes(Vec::leak((0..places * WORDS).map(|_| AtomicU64::new(0)).collect()))
    }

    #[test]
    fn a_mutex_keeps_its_place() {
        let mutexes = mutexes(1024);
        assert!(mutexes.get(Object(0x40)).is_none());
        let place = |object| mutexes.place(Object(object)).map(CommonMutex::futex);
        let first: Vec<_> = (1..=600).map(|number| place(number * 40)).collect();
        assert!(first.iter().filter(|place| place.is_some()).count() > 500);
        for (number, first) in (1..).zip(first) {
            assert_eq!(mutexes.get(Object(number * 40)).map(CommonMutex::futex), first);
        }
        let full = self::mutexes(WINDOW);
        assert!((1..=WINDOW as u64).all(|number| full.place(Object(number)).is_some()));
        assert!(full.place(Object(1000)).is_none() && full.get(Object(1000)).is_none());
    }

    #[test]
    fn threads_exclude_each_other_and_sleep() {
        let mutex = mutexes(64).place(Object(8)).unwrap();
        // A read and a write that are not one step: lost updates show if two threads are inside.
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let count = &count;
                scope.spawn(move || {
                    for _ in 0..5000 {
                        assert!(mutex.try_take() || mutex.take_soon() || mutex.take(None));
                        mutex.own(Thread(thread), NodeId(0));
                        assert!(mutex.is_held_by(Thread(thread)));
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        mutex.free();
                    }
                });
            }
        });
        assert_eq!((count.load(Ordering::Relaxed), mutex.is_free()), (20_000, true));
    }

    #[test]
    fn holders_are_known() {
        let mutex = mutexes(64).place(Object(8)).unwrap();
        let (me, node) = (Thread(9), NodeId(3));
        assert!(mutex.try_take() && !mutex.try_take());
        assert_eq!(mutex.own(me, node), None);
        assert!(mutex.deepen() && mutex.undeepen() && !mutex.undeepen());
        assert_eq!((mutex.holder_on(node), mutex.holder_on(NodeId(0))), (Some(me), None));
        assert!(!mutex.take(Some(Instant::now())), "the time is over");
        mutex.free();
        assert!(mutex.holder_on(node).is_none() && mutex.try_take());
        assert_eq!(mutex.own(Thread(1), NodeId(0)), Some(node));
    }
}
