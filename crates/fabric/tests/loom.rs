//! The ring and the doorbell of the shared memory fabric under every interleaving and every reordering that the
//! memory model allows (with a bounded number of preemptions). The same source as in the library, over checked
//! primitives: a lost wake-up shows as a deadlock, a record read while it is written as a race.
#![expect(unreachable_pub, reason = "the included modules are public in their crate")]

#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/shm/doorbell.rs"]
mod doorbell;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/shm/ring.rs"]
mod ring;

mod primitive {
    use loom::sync::atomic::fence as any_fence;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use loom::sync::{Condvar, Mutex};
    use std::time::Duration;

    pub(crate) fn fence() {
        any_fence(Ordering::SeqCst);
    }

    pub(crate) fn fence_after_change() {
        any_fence(Ordering::SeqCst);
    }

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

use doorbell::Doorbell;
use gondwana_racing::RacingBytes;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use primitive::{AtomicU64, Ordering};
use ring::{Consumer, LINE, Lines, Producer, RingControl};

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// What a thread does with a node's doorbell and its only message.
type Part = fn(&Doorbell, &AtomicU64);

/// Publishes the message and notifies.
fn send(message: &AtomicU64, ring: impl FnOnce()) {
    message.store(1, Ordering::Release);
    ring();
}

/// The service thread takes the message while these threads run.
fn the_message_is_taken<const N: usize>(parts: [Part; N]) {
    explore(move || {
        let shared = Arc::new((Doorbell::default(), AtomicU64::new(0)));
        let spawn = |&part: &Part| {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || part(&shared.0, &shared.1))
        };
        let threads: Vec<_> = parts.iter().map(spawn).collect();
        let (bell, message) = &*shared;
        while message.load(Ordering::Acquire) == 0 {
            bell.sleep(None, || message.load(Ordering::Relaxed) != 0);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_sleeper_is_woken() {
    the_message_is_taken([|bell, message| send(message, || bell.ring())]);
}

#[test]
fn a_poller_that_ends_wakes_the_sleeper() {
    // Never takes the message, so the service thread must.
    let poller: Part = |bell, message| {
        bell.begin_polling();
        bell.end_polling(|_| message.load(Ordering::Relaxed) != 0);
    };
    the_message_is_taken([|bell, message| send(message, || bell.ring()), poller]);
}

#[test]
fn a_waiter_hears_of_what_was_left() {
    // Has polled, and waits until the service thread has taken the message.
    let waiter: Part = |bell, message| bell.begin_waiting(|| message.load(Ordering::Relaxed) != 0);
    the_message_is_taken([|bell, message| send(message, || bell.ring_for_waiters()), waiter]);
}

#[test]
fn a_poller_that_ends_does_not_keep_what_was_left_from_a_waiter() {
    let waiter: Part = |bell, message| bell.begin_waiting(|| message.load(Ordering::Relaxed) != 0);
    // What was left is not urgent for anybody else.
    let poller: Part = |bell, message| {
        bell.begin_polling();
        bell.end_polling(|any_waits| any_waits && message.load(Ordering::Relaxed) != 0);
    };
    the_message_is_taken([|bell, message| send(message, || bell.ring_for_waiters()), waiter, poller]);
}

#[test]
fn a_poller_that_ends_does_not_keep_what_was_prompted() {
    explore(|| {
        let shared = Arc::new((CheckedLines::new(), RingControl::default(), Doorbell::default()));
        let sender = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                let (lines, control, bell) = &*shared;
                let mut producer = Producer::new();
                assert!(producer.leave(lines, control, b"left"));
                bell.ring_for_waiters();
                if producer.urge(control) {
                    bell.ring();
                }
            })
        };
        let poller = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                let (lines, control, bell) = &*shared;
                bell.begin_polling();
                bell.end_polling(|_| control.is_urgent(lines));
            })
        };
        let (lines, control, bell) = &*shared;
        let mut consumer = Consumer::new();
        while consumer.pop(lines, control, |_, _| {}).unwrap().is_none() {
            bell.sleep(None, || control.is_ready(lines));
        }
        sender.join().unwrap();
        poller.join().unwrap();
    });
}

#[test]
fn an_interrupt_is_not_lost() {
    explore(|| {
        let bell = Arc::new(Doorbell::default());
        let interrupter = {
            let bell = Arc::clone(&bell);
            loom::thread::spawn(move || bell.interrupt())
        };
        bell.begin_polling();
        bell.sleep(None, || false);
        bell.end_polling(|_| false);
        interrupter.join().unwrap();
    });
}

/// A ring of four lines whose payload is checked for races.
struct CheckedLines([(AtomicU64, UnsafeCell<[u8; LINE]>); 4]);

impl CheckedLines {
    fn new() -> Self {
        Self(std::array::from_fn(|_| (AtomicU64::new(0), UnsafeCell::new([0; LINE]))))
    }
}

// SAFETY: that the threads do not touch the payload at the same time is what the model checks.
unsafe impl Sync for CheckedLines {}

impl Lines for CheckedLines {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn header(&self, line: usize) -> &AtomicU64 {
        &self.0[line].0
    }

    unsafe fn fill(&self, offset: usize, bytes: RacingBytes<'_>) {
        let (line, within) = (offset / LINE, offset % LINE);
        self.0[line].1.with_mut(|payload| {
            // SAFETY: the model stops if somebody else has access now.
            unsafe { bytes.copy_to(&mut (&mut *payload)[within..within + bytes.len()]) }
        });
    }

    unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        if len == 0 {
            return &[];
        }
        let (line, within) = (offset / LINE, offset % LINE);
        // SAFETY: the model stops if somebody else has access now.
        self.0[line].1.with(|payload| unsafe { &(&*payload)[within..within + len] })
    }
}

struct Pair {
    lines: CheckedLines,
    control: RingControl,
    sender_bell: Doorbell,
    receiver_bell: Doorbell,
}

/// As many messages as pass the end of the ring and fill it.
fn exchange(messages: u32) {
    let pair = Arc::new(Pair {
        lines: CheckedLines::new(),
        control: RingControl::default(),
        sender_bell: Doorbell::default(),
        receiver_bell: Doorbell::default(),
    });
    let sender = {
        let pair = Arc::clone(&pair);
        loom::thread::spawn(move || {
            let mut producer = Producer::new();
            for number in 0..messages {
                while !producer.push_or_block(&pair.lines, &pair.control, &number.to_le_bytes(), &[]) {
                    pair.sender_bell.sleep(None, || !pair.control.is_blocked());
                }
                pair.receiver_bell.ring();
            }
        })
    };
    let mut consumer = Consumer::new();
    let mut next = 0_u32;
    while next < messages {
        let before = next;
        while let Some(len) =
            consumer.pop(&pair.lines, &pair.control, |head, _| assert_eq!(head, next.to_le_bytes())).unwrap()
        {
            assert_eq!(len, 4);
            next += 1;
        }
        if next == before {
            pair.receiver_bell.sleep(None, || pair.control.is_ready(&pair.lines));
        } else if consumer.take_blocked(&pair.control) {
            pair.sender_bell.ring();
        }
    }
    sender.join().unwrap();
}

#[test]
fn messages_pass_a_full_ring_in_order() {
    explore(|| exchange(5));
}
