//! What a node knows of synchronisation objects outside of its lock: for each mutex whose token it has had, and each other object
//! that it has kept, an entry that threads change with one atomic instruction each. Readers and writers take no lock; slots are
//! never given back.

use super::object_map::scatter;
use super::{Entry, Object, ObjectKey, Resting, Thread};
use gondwana_page::to_usize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a segment in which an object may be found.
const WINDOW: usize = 8;
/// Each segment has `1 << GROWTH_BITS` times the slots of the one before.
const GROWTH_BITS: u32 = 2;
/// 8,192 slots at first: 256 KiB.
const FIRST_BITS: u32 = 13;
const SEGMENTS: usize = 9;

/// Half a cache line, so that key and state of a mutex are in one.
#[derive(Debug, Default)]
#[repr(align(32))]
struct Slot<E> {
    /// The address, or 0. Set once, never cleared.
    key: AtomicU64,
    entry: E,
}

/// The mutexes that threads of this node used.
pub type LockTable = Table<Entry>;

/// The objects that threads of this node used: a hash table that only grows, read without a lock.
///
/// An object's places are the window of slots that its hash selects in the first segment, then the window in the
/// second, and so on. Slots are filled in that order and never emptied, so an empty slot proves that the object
/// is in no later place, and of two threads inserting one object both end at the same slot. Mutexes that follow each
/// other in memory follow each other here, so that processors foresee the one access as they foresee the other.
#[derive(Debug)]
pub struct Table<E> {
    first_bits: u32,
    segments: [OnceLock<Box<[Slot<E>]>>; SEGMENTS],
}

impl<E: Default> Default for Table<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Default> Table<E> {
    /// An empty table. Memory is allocated with the first object.
    #[must_use]
    pub fn new() -> Self {
        Self::with_first_bits(FIRST_BITS)
    }

    pub(super) fn with_first_bits(first_bits: u32) -> Self {
        Self { first_bits, segments: Default::default() }
    }

    /// The entry of an object, made if there was none.
    ///
    /// # Panics
    /// If the table is full, which takes more objects than memory could hold.
    #[inline]
    #[must_use]
    pub fn entry(&self, object: Object) -> &E {
        self.at_hand(object).or_else(|| self.find(object, true)).expect("the table of objects is full")
    }

    /// The entry of an object, if a thread of this node used it.
    #[inline]
    #[must_use]
    pub fn get(&self, object: Object) -> Option<&E> {
        self.at_hand(object).or_else(|| self.find(object, false))
    }

    /// The entry of an object, if it is where most are.
    #[inline]
    #[must_use]
    pub fn at_hand(&self, object: Object) -> Option<&E> {
        let segment = self.segments[0].get()?;
        let slot = segment.get(place(object) & (segment.len() - 1))?;
        // Relaxed: nothing but the key is read, and the entry is made of atomics that were zero before.
        (slot.key.load(Ordering::Relaxed) == object.0).then_some(&slot.entry)
    }

    #[inline(never)]
    fn find(&self, object: Object, insert: bool) -> Option<&E> {
        debug_assert_ne!(object.0, 0, "no object has address 0");
        let start = place(object);
        let mut bits = self.first_bits;
        for cell in &self.segments {
            let segment = match cell.get() {
                Some(segment) => segment,
                None if insert => cell.get_or_init(|| (0..1usize << bits).map(|_| Slot::default()).collect()),
                None => return None,
            };
            for step in 0..WINDOW {
                let slot = &segment[start.wrapping_add(step) & (segment.len() - 1)];
                let mut found = slot.key.load(Ordering::Acquire);
                if found == 0 {
                    if !insert {
                        return None;
                    }
                    let claimed = slot.key.compare_exchange(0, object.0, Ordering::AcqRel, Ordering::Acquire);
                    found = claimed.map_or_else(|winner| winner, |_| object.0);
                }
                if found == object.0 {
                    return Some(&slot.entry);
                }
            }
            bits += GROWTH_BITS;
        }
        None
    }
}

impl LockTable {
    /// The mutexes that threads of this node hold, each with its holder, while others go on.
    pub fn held(&self) -> impl Iterator<Item = (Object, Thread)> {
        let slots = self.segments.iter().filter_map(OnceLock::get).flat_map(|segment| segment.iter());
        slots.filter_map(|slot| Some((Object(slot.key.load(Ordering::Acquire)), slot.entry.holder()?)))
    }

    /// The mutexes that this node knows to be [common](Entry::is_common), while others become so.
    pub fn common(&self) -> impl Iterator<Item = Object> {
        let slots = self.segments.iter().filter_map(OnceLock::get).flat_map(|segment| segment.iter());
        let common = slots.filter(|slot| slot.entry.is_common());
        common.map(|slot| Object(slot.key.load(Ordering::Acquire)))
    }
}

/// Where the window of an object begins, in slots: objects of one stretch of memory in their order, stretches anywhere.
#[inline]
fn place(object: Object) -> usize {
    /// No mutex is shorter: only locks of other kinds share places with their neighbours.
    const GRAIN_BITS: u32 = 5;
    /// As long as the places of the first segment are different.
    const STRETCH_BITS: u32 = GRAIN_BITS + FIRST_BITS;
    let stretch = scatter(object.0 >> STRETCH_BITS) >> 32;
    to_usize(stretch + (object.0 >> GRAIN_BITS))
}

impl Table<Resting> {
    /// What a node knows of an object outside of its lock, if it ever had it.
    #[inline]
    #[must_use]
    pub fn resting(&self, key: ObjectKey) -> Option<&Resting> {
        self.get(key.word())
    }

    /// The same, if it is where most are.
    #[inline]
    #[must_use]
    pub fn at_hand_of(&self, key: ObjectKey) -> Option<&Resting> {
        self.at_hand(key.word())
    }
}

#[cfg(test)]
impl<E> Table<E> {
    /// All objects with their entries, in the order of their addresses.
    pub(super) fn contents(&self) -> Vec<(Object, &E)> {
        let mut all: Vec<_> = self
            .segments
            .iter()
            .filter_map(OnceLock::get)
            .flat_map(|segment| segment.iter())
            .map(|slot| (Object(slot.key.load(Ordering::Acquire)), &slot.entry))
            .filter(|(object, _)| object.0 != 0)
            .collect();
        all.sort_by_key(|(object, _)| *object);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Word;
    use super::super::{Fast, Kind, SyncError};
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;

    #[test]
    fn every_object_has_one_entry_for_good() {
        // 16 slots at first, so that 20,000 objects at several strides reach the later segments.
        let table = LockTable::with_first_bits(4);
        let objects: Vec<_> = [8u64, 40, 48, 64, 4096]
            .iter()
            .enumerate()
            .flat_map(|(base, stride)| (1..4000).map(move |i| Object(((base as u64 + 1) << 40) + i * stride)))
            .collect();
        let first: Vec<_> = objects.iter().map(|object| std::ptr::from_ref(table.entry(*object))).collect();
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), objects.len());
        for (object, entry) in objects.iter().zip(first) {
            assert!(std::ptr::eq(table.get(*object).unwrap(), entry));
        }
        assert!(table.get(Object(7)).is_none());
        assert_eq!(table.held().count(), 0);
        table.entry(objects[9]).set(Word::Free);
        assert!(table.entry(objects[9]).lock_at_hand(Thread(3)));
        assert_eq!(table.held().collect::<Vec<_>>(), [(objects[9], Thread(3))]);
        assert_eq!(table.contents().len(), objects.len());
    }

    #[test]
    fn threads_inserting_at_once_agree() {
        let table = LockTable::with_first_bits(1);
        let start = Barrier::new(4);
        let seen: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let address = |i: u64| std::ptr::from_ref(table.entry(Object(i * 40))).addr();
                        (1..3000).map(address).collect()
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|addresses| *addresses == seen[0]));
        assert_eq!(seen[0].iter().collect::<HashSet<_>>().len(), 2999);
    }

    #[test]
    fn the_fast_path_excludes() {
        let table = LockTable::new();
        let object = Object(0x1000);
        table.entry(object).set(Word::Free);
        // A read and a write that are not one step: lost updates show if two threads are inside.
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (table, count) = (&table, &count);
                scope.spawn(move || {
                    for _ in 0..5000 {
                        let entry = table.entry(object);
                        while entry.fast_lock(Thread(thread), || Kind::Normal) != Ok(Fast::Done) {
                            std::thread::yield_now();
                        }
                        assert!(entry.is_held_by(Thread(thread)));
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        assert_eq!(entry.fast_unlock(Thread(thread), || Kind::Normal), Ok(Fast::Done));
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 20_000);
    }

    #[test]
    fn unlocking_at_hand_leaves_alone_what_takes_more() {
        let entry = Entry::default();
        let (me, other) = (Thread(1), Thread(2));
        assert!(!entry.lock_at_hand(me), "where the token rests is not known");
        entry.set(Word::Free);
        assert!(entry.lock_at_hand(me) && !entry.lock_at_hand(other));
        assert!(!entry.unlock_at_hand(other));
        assert_eq!(entry.fast_lock(me, || Kind::Recursive), Ok(Fast::Done));
        assert!(!entry.unlock_at_hand(me), "locked twice");
        assert_eq!(entry.fast_unlock(me, || Kind::Recursive), Ok(Fast::Done));
        entry.set(Word::HeldQueued);
        assert!(!entry.unlock_at_hand(me), "somebody waits");
        assert_eq!(entry.parts(), (Word::HeldQueued, 1, 1));
        assert_eq!(entry.holder(), Some(me));
        entry.set(Word::Held);
        assert!(entry.unlock_at_hand(me));
        assert_eq!(entry.parts().1, 0);
        assert_eq!(entry.word(), Word::Free);
    }

    #[test]
    fn mutexes_of_an_array_are_at_hand() {
        let table = LockTable::new();
        let mutexes = (0..1000).map(|index| Object(0x7f00_0000_0000 + index * 40));
        for mutex in mutexes.clone() {
            let _ = table.entry(mutex);
        }
        assert!(mutexes.into_iter().all(|mutex| table.at_hand(mutex).is_some()));
    }

    #[test]
    fn kinds_differ_as_posix_says() {
        let entry = Entry::default();
        entry.set(Word::Free);
        let (me, other) = (Thread(1), Thread(2));
        assert_eq!(entry.fast_unlock(me, || Kind::ErrorCheck), Err(SyncError::NotOwner));
        assert_eq!(
            entry.fast_lock(me, || panic!("the kind of a free mutex does not matter")),
            Ok(Fast::Done)
        );
        assert_eq!(entry.fast_lock(me, || Kind::ErrorCheck), Err(SyncError::Deadlock));
        assert_eq!(entry.fast_lock(me, || Kind::Normal), Ok(Fast::Slow));
        assert_eq!(entry.fast_lock(me, || Kind::Recursive), Ok(Fast::Done));
        assert_eq!(entry.fast_try_lock(me, || Kind::Recursive), Ok(Fast::Done));
        assert_eq!(entry.fast_try_lock(me, || Kind::ErrorCheck), Err(SyncError::Busy));
        assert_eq!(entry.fast_try_lock(other, || Kind::Recursive), Err(SyncError::Busy));
        assert_eq!(entry.fast_unlock(other, || Kind::Recursive), Err(SyncError::NotOwner));
        assert_eq!(entry.parts().2, 3);
        for held in [true, true, false] {
            assert_eq!(entry.fast_unlock(me, || Kind::Recursive), Ok(Fast::Done));
            assert_eq!(entry.is_held_by(me), held);
        }
        assert!(!entry.is_locked());
        // A normal mutex can be unlocked by another thread of the node.
        assert_eq!(entry.fast_lock(me, || Kind::Normal), Ok(Fast::Done));
        assert_eq!(entry.fast_unlock(other, || Kind::Normal), Ok(Fast::Done));
        assert!(!entry.is_locked() && !entry.is_held_by(me));
    }
}
