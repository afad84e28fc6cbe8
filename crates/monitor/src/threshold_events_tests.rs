//! The queue of threshold events, in one thread and between several.

use crate::sizes::EVENTS;
use crate::threshold_events::{ThresholdEvent, ThresholdEvents};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn event(count: u64) -> ThresholdEvent {
    ThresholdEvent { filter: 3, address: 64, count }
}

#[test]
fn what_is_put_in_comes_out_in_order_as_far_as_there_is_room() {
    let events = ThresholdEvents::default();
    assert_eq!(events.pop(), None);
    for round in 0..3 {
        for count in 0..EVENTS + 10 {
            events.push(event(count));
        }
        assert_eq!(events.lost(), 10 * (round + 1));
        for count in 0..EVENTS {
            assert_eq!(events.pop(), Some(event(count)));
        }
        assert_eq!(events.pop(), None);
    }
}

#[test]
fn nothing_is_lost_or_doubled_between_threads() {
    let events = ThresholdEvents::default();
    let done = AtomicBool::new(false);
    let mut sums = [0_u64; 2];
    thread::scope(|scope| {
        let writers: Vec<_> =
            (0..2).map(|_| scope.spawn(|| (1..20_000).for_each(|count| events.push(event(count))))).collect();
        let reader = scope.spawn(|| {
            let mut taken = 0_u64;
            loop {
                let over = done.load(Ordering::Acquire);
                match events.pop() {
                    Some(_) => taken += 1,
                    None if over => return taken,
                    None => thread::yield_now(),
                }
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        sums = [reader.join().unwrap(), events.lost()];
    });
    assert_eq!(sums[0] + sums[1], 2 * 19_999);
}
