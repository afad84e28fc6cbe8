//! A program of Rust that knows nothing of nodes: channels, deques that threads steal from, memory that is freed by epochs, scopes,
//! parkers and locks by crossbeam.

use crossbeam::channel::{self, RecvTimeoutError};
use crossbeam::deque::{Injector, Stealer, Worker};
use crossbeam::epoch::{self, Atomic, Owned};
use crossbeam::queue::{ArrayQueue, SegQueue};
use crossbeam::sync::{Parker, ShardedLock, WaitGroup};
use crossbeam::utils::{Backoff, CachePadded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const THREADS: u64 = 4;
const ROUNDS: u64 = 100;

/// Channels with room for none, for some and for any number, and one that ends by a timeout.
fn channels() {
    let (send_none, receive_none) = channel::bounded::<u64>(0);
    let (send_some, receive_some) = channel::bounded::<u64>(3);
    let (send_result, results) = channel::unbounded();
    crossbeam::scope(|scope| {
        for self_ in 0..THREADS {
            let (none, some) = (send_none.clone(), send_some.clone());
            scope.spawn(move |_| {
                for round in 0..ROUNDS / 2 {
                    let channel = if (round + self_) % 2 == 0 { &none } else { &some };
                    channel.send(round).expect("main receives");
                }
            });
        }
        drop((send_none, send_some));
        for _ in 0..2 {
            let (none, some, results) = (receive_none.clone(), receive_some.clone(), send_result.clone());
            scope.spawn(move |_| {
                let (mut sum, mut open) = (0, [true; 2]);
                let never = channel::never();
                while open != [false; 2] {
                    crossbeam::select! {
                        recv(if open[0] { &none } else { &never }) -> value => match value {
                            Ok(value) => sum += value,
                            Err(_) => open[0] = false,
                        },
                        recv(if open[1] { &some } else { &never }) -> value => match value {
                            Ok(value) => sum += value,
                            Err(_) => open[1] = false,
                        },
                    }
                }
                results.send(sum).expect("main receives");
            });
        }
        drop(send_result);
    })
    .expect("no thread panics");
    println!("channels {}", results.iter().sum::<u64>());
    let (_kept, silent) = channel::bounded::<u64>(1);
    println!("timeout {}", silent.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout));
}

/// The next task of a thread: its own, one that nobody has, or one of another thread.
fn next(own: &Worker<u64>, common: &Injector<u64>, others: &[Stealer<u64>]) -> Option<u64> {
    own.pop().or_else(|| {
        std::iter::repeat_with(|| {
            common.steal_batch_and_pop(own).or_else(|| others.iter().map(Stealer::steal).collect())
        })
        .find(|stolen| !stolen.is_retry())
        .and_then(crossbeam::deque::Steal::success)
    })
}

/// Each task makes two smaller ones.
fn deques() {
    let common = Injector::new();
    let workers: Vec<Worker<u64>> = (0..THREADS).map(|_| Worker::new_lifo()).collect();
    let stealers: Vec<Stealer<u64>> = workers.iter().map(Worker::stealer).collect();
    let (left, sum) = (AtomicU64::new(1), AtomicU64::new(0));
    common.push(9);
    crossbeam::scope(|scope| {
        for own in workers {
            let (common, stealers, left, sum) = (&common, &stealers, &left, &sum);
            scope.spawn(move |_| {
                let backoff = Backoff::new();
                while left.load(Ordering::SeqCst) > 0 {
                    let Some(size) = next(&own, common, stealers) else {
                        backoff.snooze();
                        continue;
                    };
                    backoff.reset();
                    sum.fetch_add(size, Ordering::Relaxed);
                    if size > 0 {
                        left.fetch_add(2, Ordering::SeqCst);
                        own.push(size - 1);
                        own.push(size - 1);
                    }
                    left.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    })
    .expect("no thread panics");
    println!("deques {}", sum.into_inner());
}

/// A stack without locks, whose links are freed once no thread can see them.
struct Stack {
    head: Atomic<Link>,
}

struct Link {
    value: u64,
    next: Atomic<Link>,
}

impl Stack {
    fn push(&self, value: u64) {
        let guard = epoch::pin();
        let mut link = Owned::new(Link { value, next: Atomic::null() });
        loop {
            let head = self.head.load(Ordering::Acquire, &guard);
            link.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange(head, link, Ordering::Release, Ordering::Relaxed, &guard) {
                Ok(_) => return,
                Err(changed) => link = changed.new,
            }
        }
    }

    fn pop(&self) -> Option<u64> {
        let guard = epoch::pin();
        loop {
            let head = self.head.load(Ordering::Acquire, &guard);
            // SAFETY: a link is destroyed only once no thread is pinned that has seen it.
            let link = unsafe { head.as_ref() }?;
            let next = link.next.load(Ordering::Acquire, &guard);
            if self.head.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed, &guard).is_ok() {
                // SAFETY: this thread alone has taken the link off the stack.
                unsafe { guard.defer_destroy(head) };
                return Some(link.value);
            }
        }
    }
}

fn epochs() {
    let stack = Stack { head: Atomic::null() };
    let sum = CachePadded::new(AtomicU64::new(0));
    let (any, some, table) = (SegQueue::new(), ArrayQueue::new(8), ShardedLock::new([0; 4]));
    let group = WaitGroup::new();
    crossbeam::scope(|scope| {
        for _ in 0..THREADS {
            let (stack, sum, any, some, table, group) = (&stack, &sum, &any, &some, &table, group.clone());
            scope.spawn(move |_| {
                for round in 0..ROUNDS {
                    stack.push(round);
                    any.push(round);
                    while some.push(round).is_err() {
                        some.pop();
                    }
                    if round % 10 == 0 {
                        for part in table.write().expect("no thread panics").iter_mut() {
                            *part += 1;
                        }
                    }
                    let seen = *table.read().expect("no thread panics");
                    assert!(seen.iter().all(|part| *part == seen[0]), "half written: {seen:?}");
                    if round % 2 == 1 {
                        for _ in 0..2 {
                            sum.fetch_add(stack.pop().expect("two were pushed"), Ordering::Relaxed);
                        }
                    }
                }
                drop(group);
            });
        }
        group.wait();
    })
    .expect("no thread panics");
    let queued = std::iter::from_fn(|| any.pop()).sum::<u64>();
    println!(
        "epochs {} {queued} {} {:?}",
        sum.load(Ordering::Relaxed),
        some.len(),
        table.read().expect("read")
    );
}

/// Threads in a ring that wake each other.
fn parkers() {
    let parkers: Vec<Parker> = (0..THREADS).map(|_| Parker::new()).collect();
    let unparkers: Vec<_> = parkers.iter().map(|parker| parker.unparker().clone()).collect();
    let turns = AtomicU64::new(0);
    crossbeam::scope(|scope| {
        for (self_, parker) in parkers.into_iter().enumerate() {
            let (unparkers, turns) = (&unparkers, &turns);
            scope.spawn(move |_| {
                for _ in 0..ROUNDS {
                    parker.park();
                    turns.fetch_add(1, Ordering::Relaxed);
                    unparkers[(self_ + 1) % unparkers.len()].unpark();
                }
            });
        }
        unparkers[0].unpark();
    })
    .expect("no thread panics");
    println!("parkers {}", turns.into_inner());
}

fn main() {
    channels();
    deques();
    epochs();
    parkers();
}
