//! Threshold events on their way from counting threads to the thread that handles them.

use crate::primitive::{AtomicU64, Ordering};
use crate::sizes::EVENTS;

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
        let places = (0..EVENTS).map(|turn| Place { turn: AtomicU64::new(turn), ..Place::default() });
        let (next, first, lost) = Default::default();
        Self { places: places.collect(), next, first, lost }
    }
}

impl ThresholdEvents {
    fn place(&self, number: u64) -> &Place {
        &self.places[(number & (EVENTS - 1)) as usize]
    }

    /// Pushes an event, or counts it as lost if the queue is full.
    pub(crate) fn push(&self, event: ThresholdEvent) {
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
    pub(crate) fn pop(&self) -> Option<ThresholdEvent> {
        let number = self.first.load(Ordering::Relaxed);
        let place = self.place(number);
        if place.turn.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        let event = ThresholdEvent {
            filter: (place.filter.load(Ordering::Relaxed) & 0xff) as u8,
            address: place.address.load(Ordering::Relaxed),
            count: place.count.load(Ordering::Relaxed),
        };
        place.turn.store(number + EVENTS, Ordering::Release);
        self.first.store(number + 1, Ordering::Relaxed);
        Some(event)
    }

    /// The number of events that were lost because the queue was full.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
