//! The fast path of a mutex under every interleaving and every reordering that the memory model allows (with a bounded number
//! of preemptions): threads exclude each other, what one wrote the next one sees, and a thread that begins to wait is
//! never overlooked by the one that unlocks.
#![expect(unreachable_pub, reason = "the included modules are public in their crate")]

/// The same source as in the library, over checked primitives.
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/sync/entry.rs"]
mod entry;

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
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
