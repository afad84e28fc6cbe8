//! The place where a thread waits, under every interleaving and every reordering that the memory model allows (with a
//! bounded number of preemptions). The same source as in the library, over checked primitives: a lost wake-up shows as a
//! deadlock.
#![expect(unreachable_pub, reason = "the included modules are public in their crate")]

#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/wait_slots/event.rs"]
mod event;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/wait_slots/place.rs"]
mod place;

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// A futex: comparison and falling asleep are one step.
    #[derive(Default)]
    pub(crate) struct FutexWord {
        word: AtomicU32,
        bucket: Mutex<()>,
        sleepers: Condvar,
    }

    impl FutexWord {
        pub fn word(&self) -> &AtomicU32 {
            &self.word
        }

        pub fn wait(&self, expected: u32, _: Option<Duration>) {
            let bucket = self.bucket.lock().unwrap();
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.sleepers.wait(bucket).unwrap());
            }
        }

        pub fn wake(&self) {
            let _bucket = self.bucket.lock().unwrap();
            self.sleepers.notify_all();
        }
    }
}

use loom::sync::Arc;
use loom::thread;
use place::Place;
use primitive::{AtomicU32, Ordering};

/// Who announces which events, with which result.
type Announcement = (u32, i64);

/// The owner of a place awaits events one after the other, while threads announce theirs. `check` sees the place when all is
/// over.
fn explore<const N: usize>(by: [&'static [Announcement]; N], awaited: &'static [u32], check: fn(&Place)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Arc::new((Place::default(), AtomicU32::new(0)));
        shared.0.arm(u32::MAX >> 1);
        let spawn = |announcements: &'static [Announcement]| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for &(events, result) in announcements {
                    if shared.0.announce(events, result, &shared.1) {
                        shared.0.wake();
                    }
                }
            })
        };
        let announcers = by.map(spawn);
        for &mask in awaited {
            let seen = shared.0.sleep(mask, None, &shared.1);
            assert!(seen != 0 && seen & !mask == 0);
            assert_eq!(shared.0.seen(seen), seen, "events stay until they are armed again");
            if seen & event::DONE != 0 {
                assert_eq!(shared.0.result(), 7, "the result comes with its event");
            }
        }
        for announcer in announcers {
            announcer.join().unwrap();
        }
        assert_eq!(shared.1.load(Ordering::Relaxed), 0, "nobody is counted as waking who runs");
        check(&shared.0);
    });
}

#[test]
fn no_wake_up_is_lost() {
    explore([&[(event::DONE, 7)]], &[event::DONE], |_| {});
}

#[test]
fn an_answer_in_two_parts_arrives_in_two_parts() {
    explore([&[(event::QUEUED, 0), (event::DONE, 7)]], &[event::QUEUED, event::ANSWERED], |_| {});
}

#[test]
fn who_is_woken_for_something_else_sleeps_on() {
    let by: [&[Announcement]; 2] = [&[(event::COHERENT, 0)], &[(event::DONE, 7)]];
    explore(by, &[event::DONE], |place| assert_eq!(place.seen(event::COHERENT), event::COHERENT));
    explore(by, &[event::COHERENT, event::DONE], |_| {});
}
