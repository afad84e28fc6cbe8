//! The fast paths of mutexes and of resting objects under every interleaving and every reordering that the memory model allows (with a bounded number
//! of preemptions): threads exclude each other, what one wrote the next one sees, and a thread that begins to wait is
//! never overlooked by the one that unlocks.
#![expect(unreachable_pub, reason = "the included modules are public in their crate")]

/// The same source as in the library, over checked primitives.
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/sync/entry.rs"]
mod entry;

/// The same of conditions, semaphores and readers-writer locks.
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/sync/resting.rs"]
mod resting;

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

/// What the node does with entries under its lock.
mod under_lock {
    use super::Thread;
    use super::entry::{Entry, Word};

    /// The token has come, and no thread holds the mutex.
    pub(crate) fn arrive(entry: &Entry) {
        entry.set(Word::Free);
    }

    /// A thread that finds the mutex held begins to wait. False if it became free meanwhile.
    pub(crate) fn wait(entry: &Entry) -> bool {
        entry.transition(Word::Held, Word::HeldQueued)
    }

    /// The token is to leave; false if a thread holds the mutex.
    pub(crate) fn leave(entry: &Entry) -> bool {
        entry.transition(Word::Free, Word::Leaving)
    }

    /// An unlock that found threads waiting passes the mutex to one of them.
    pub(crate) fn hand_over(entry: &Entry, to: Thread) {
        entry.own(to);
        entry.set(Word::Held);
    }
}

use entry::{Entry, Fast, Kind};
use gondwana_coherence::sync::{SyncError, Thread};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use resting::{Rest, Resting};

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A mutex whose token is here, and what it guards: loom fails if two threads use that at a time, or one without seeing what
/// another did.
struct Guarded {
    entry: Entry,
    value: UnsafeCell<u32>,
}

impl Guarded {
    fn new() -> Arc<Self> {
        let guarded = Self { entry: Entry::default(), value: UnsafeCell::new(0) };
        under_lock::arrive(&guarded.entry);
        Arc::new(guarded)
    }

    /// By a thread that holds the mutex.
    fn add(&self) {
        // SAFETY: the holder is the only one; loom checks that.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

#[test]
fn threads_on_the_fast_path_exclude_each_other() {
    model(|| {
        let guarded = Guarded::new();
        let run = |number: u64| {
            let guarded = Arc::clone(&guarded);
            move || {
                let thread = Thread(number);
                if guarded.entry.lock_at_hand(thread) {
                    guarded.add();
                    assert!(guarded.entry.unlock_at_hand(thread));
                }
                assert!(!guarded.entry.is_held_by(thread));
            }
        };
        let others = [loom::thread::spawn(run(2)), loom::thread::spawn(run(3))];
        run(1)();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(guarded.entry.lock_at_hand(Thread(1)));
    });
}

#[test]
fn a_thread_that_waits_is_seen_by_the_one_that_unlocks() {
    model(|| {
        let guarded = Guarded::new();
        assert!(guarded.entry.lock_at_hand(Thread(1)));
        let waiter = {
            let guarded = Arc::clone(&guarded);
            loom::thread::spawn(move || {
                let waits = under_lock::wait(&guarded.entry);
                if !waits {
                    // Unlocked in between.
                    assert!(guarded.entry.lock_at_hand(Thread(2)));
                    guarded.add();
                }
                waits
            })
        };
        guarded.add();
        let unlocked = guarded.entry.fast_unlock(Thread(1), || Kind::Normal).unwrap();
        let waits = waiter.join().unwrap();
        assert_eq!(unlocked == Fast::Slow, waits);
        if waits {
            under_lock::hand_over(&guarded.entry, Thread(2));
            guarded.add();
        }
        assert!(guarded.entry.is_held_by(Thread(2)));
    });
}

#[test]
fn a_token_leaves_or_a_thread_locks_the_mutex() {
    model(|| {
        let guarded = Guarded::new();
        let node = {
            let guarded = Arc::clone(&guarded);
            loom::thread::spawn(move || under_lock::leave(&guarded.entry))
        };
        let locked = guarded.entry.lock_at_hand(Thread(1));
        if locked {
            guarded.add();
        }
        assert_ne!(node.join().unwrap(), locked);
    });
}

/// An object that rests here, and what it guards.
struct Kept {
    object: Resting,
    value: UnsafeCell<u32>,
    told: AtomicU32,
}

impl Kept {
    fn new(rest: Rest) -> Arc<Self> {
        let kept = Self { object: Resting::default(), value: UnsafeCell::new(0), told: AtomicU32::new(0) };
        kept.object.keep(rest);
        Arc::new(kept)
    }

    fn add(&self) {
        // SAFETY: whoever calls this is the only one; loom checks that.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    fn look(&self) {
        // SAFETY: nobody writes meanwhile; loom checks that.
        let _value = self.value.with(|value| unsafe { *value });
    }
}

#[test]
fn readers_and_writers_of_a_resting_lock_exclude_each_other() {
    model(|| {
        let kept = Kept::new(Rest::default());
        let reader = |kept: Arc<Kept>| {
            move || {
                if kept.object.read() {
                    kept.look();
                    assert!(kept.object.end_read());
                }
            }
        };
        let other = loom::thread::spawn(reader(Arc::clone(&kept)));
        if kept.object.write() {
            kept.add();
            assert!(!kept.object.read() && kept.object.end_write());
        }
        reader(Arc::clone(&kept))();
        other.join().unwrap();
        assert!(kept.object.write());
    });
}

#[test]
fn a_lock_leaves_with_those_that_read() {
    model(|| {
        let kept = Kept::new(Rest::default());
        let reader = {
            let kept = Arc::clone(&kept);
            loom::thread::spawn(move || {
                // What another node has meanwhile is unlocked there.
                kept.object.read() && {
                    kept.look();
                    !kept.object.end_read()
                }
            })
        };
        let rest = kept.object.take().unwrap();
        if rest.count == 0 {
            kept.add();
        }
        assert_eq!(reader.join().unwrap(), rest.count == 1);
        assert!(!kept.object.read() && kept.object.take().is_none());
    });
}

#[test]
fn a_wait_for_a_semaphore_sees_what_was_posted() {
    model(|| {
        let kept = Kept::new(Rest { stamp: 7, ..Rest::default() });
        let poster = {
            let kept = Arc::clone(&kept);
            loom::thread::spawn(move || {
                kept.add();
                assert!(!kept.object.post(6) && kept.object.post(7));
            })
        };
        if kept.object.take_one(7) {
            kept.add();
        }
        poster.join().unwrap();
        let waited = kept.object.take().unwrap().count == 0;
        kept.value.with(|value| {
            // SAFETY: the other thread has ended.
            assert_eq!(unsafe { *value }, 1 + u32::from(waited));
        });
    });
}

#[test]
fn a_signal_in_vain_was_given_before_anybody_waited() {
    model(|| {
        let kept = Kept::new(Rest::default());
        let signaller = {
            let kept = Arc::clone(&kept);
            loom::thread::spawn(move || {
                kept.told.store(1, Ordering::Relaxed);
                kept.object.nobody_waits()
            })
        };
        // Begins to wait, and looks then.
        let _rest = kept.object.take();
        let told = kept.told.load(Ordering::Relaxed) == 1;
        assert!(signaller.join().unwrap() <= told, "whoever waits must have seen it");
    });
}
