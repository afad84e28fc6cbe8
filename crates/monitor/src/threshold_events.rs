//! Threshold events on their way from counting threads to the thread that handles them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Room for events, a power of two.
const PLACES: u64 = 1024;

/// A counter has reached its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThresholdEvent {
    /// The number of the filter.
    pub filter: u8,
    /// The first address of the unit that was counted.
    pub address: u64,
    /// The value of the counter.
    pub count: u64,
}

#[derive(Default)]
struct Place {
    /// The number of the event that may be written here; one more once it is written.
    turn: AtomicU64,
    filter: AtomicU64,
    address: AtomicU64,
    count: AtomicU64,
}

/// A bounded queue without a lock: any number of threads push, one thread at a time pops (Vyukov's bounded queue).
pub(crate) struct ThresholdEvents {
    places: Box<[Place]>,
    /// The numbers of the next event to push and of the next to pop.
    next: AtomicU64,
    first: AtomicU64,
    lost: AtomicU64,
}

impl Default for ThresholdEvents {
    fn default() -> Self {
        let places = (0..PLACES).map(|turn| Place { turn: AtomicU64::new(turn), ..Place::default() });
        let (next, first, lost) = Default::default();
        Self { places: places.collect(), next, first, lost }
    }
}

impl ThresholdEvents {
    fn place(&self, number: u64) -> &Place {
        &self.places[(number & (PLACES - 1)) as usize]
    }

    /// Pushes an event, or counts it as lost if the queue is full.
    pub fn push(&self, event: ThresholdEvent) {
        let mut number = self.next.load(Ordering::Relaxed);
        loop {
            let place = self.place(number);
            let turn = place.turn.load(Ordering::Acquire);
            if turn < number {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            if turn > number {
                number = self.next.load(Ordering::Relaxed);
                continue;
            }
            match self.next.compare_exchange_weak(number, number + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    place.filter.store(event.filter.into(), Ordering::Relaxed);
                    place.address.store(event.address, Ordering::Relaxed);
                    place.count.store(event.count, Ordering::Relaxed);
                    place.turn.store(number + 1, Ordering::Release);
                    return;
                }
                Err(other) => number = other,
            }
        }
    }

    /// Pops the next event.
    pub fn pop(&self) -> Option<ThresholdEvent> {
        let number = self.first.load(Ordering::Relaxed);
        let place = self.place(number);
        if place.turn.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        let event = ThresholdEvent {
            filter: place.filter.load(Ordering::Relaxed) as u8,
            address: place.address.load(Ordering::Relaxed),
            count: place.count.load(Ordering::Relaxed),
        };
        place.turn.store(number + PLACES, Ordering::Release);
        self.first.store(number + 1, Ordering::Relaxed);
        Some(event)
    }

    /// The number of events that were lost because the queue was full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    fn event(count: u64) -> ThresholdEvent {
        ThresholdEvent { filter: 3, address: 64, count }
    }

    #[test]
    fn what_is_put_in_comes_out_in_order_as_far_as_there_is_room() {
        let events = ThresholdEvents::default();
        assert_eq!(events.pop(), None);
        for round in 0..3 {
            for count in 0..PLACES + 10 {
                events.push(event(count));
            }
            assert_eq!(events.lost(), 10 * (round + 1));
            for count in 0..PLACES {
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
            let writers: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| (1..20_000).for_each(|count| events.push(event(count)))))
                .collect();
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
}
