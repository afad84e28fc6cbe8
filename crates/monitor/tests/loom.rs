//! The counter bank under every interleaving and every reordering that the memory model allows (with a bounded number of
//! preemptions). The same source as in the library, over checked atomics and with few counters.
#![expect(unreachable_pub, reason = "the included modules are public in their crate")]

#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/counter_bank.rs"]
mod counter_bank;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/filter.rs"]
mod filter;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/partition.rs"]
mod partition;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/threshold_events.rs"]
mod threshold_events;
#[allow(dead_code, reason = "the library uses all of it")]
#[path = "../src/transaction.rs"]
mod transaction;

#[cfg(test)]
use filter::FilterText;
use filter::{Directions, Filter, FilterError, Threshold};
use partition::Partition;
use transaction::{Direction, Kind, Kinds, Transaction, UnknownKind};

mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
}

mod sizes {
    pub(crate) const MOST_FILTERS: usize = 1;
    pub(crate) const COUNTERS: usize = 6;
    pub(crate) const SECONDARIES: usize = 4;
    pub(crate) const EVENTS: u64 = 2;
}

use counter_bank::{CounterBank, Entry};
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;
use threshold_events::{ThresholdEvent, ThresholdEvents};

const PREEMPTIONS: usize = 3;

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

/// A filter of two lines of 32 bytes, with the counters from `first` on.
fn entry(start: u64, first: u32) -> Entry {
    let filter = Filter::new(start, start + 0x40, 5);
    Entry { filter, number: 0, first, own: false, secondaries: [Kinds::NONE; sizes::SECONDARIES] }
}

fn read(address: u64) -> Transaction {
    let (kind, direction) = (Kind::Read, Direction::Out);
    Transaction { kind, direction, address, bytes: 0, peer: 1, thread: None, code: 0 }
}

/// A thread counts while the filter is replaced twice, so that the copy of the table which it reads is overwritten. Only
/// the first filter holds the address. Half of the last change would count for another counter than that filter's.
#[test]
fn a_transaction_never_matches_half_of_a_change() {
    explore(|| {
        let bank = Arc::new(CounterBank::default());
        bank.put_in_force(&[entry(0x40, 0)]);
        let counting = thread::spawn({
            let bank = Arc::clone(&bank);
            move || bank.count(&read(0x60))
        });
        bank.put_in_force(&[entry(0x1000, 2)]);
        bank.put_in_force(&[entry(0x20, 4)]);
        counting.join().unwrap();
        let counted: Vec<u64> = bank.read(0, sizes::COUNTERS).collect();
        assert!([vec![0, 1, 0, 0, 0, 0], vec![0; 6]].contains(&counted), "{counted:?}");
    });
}

#[test]
fn threshold_events_are_whole_or_counted_as_lost() {
    explore(|| {
        let events = Arc::new(ThresholdEvents::default());
        let event = |number: u8| ThresholdEvent {
            filter: number,
            address: u64::from(number) << 8,
            count: u64::from(number) << 16,
        };
        let pushing = thread::spawn({
            let events = Arc::clone(&events);
            move || {
                events.push(event(1));
                events.push(event(2));
            }
        });
        events.push(event(3));
        let mut popped: Vec<ThresholdEvent> = events.pop().into_iter().collect();
        pushing.join().unwrap();
        popped.extend(std::iter::from_fn(|| events.pop()));
        assert_eq!(popped.len() as u64 + events.lost(), 3);
        assert!(popped.iter().all(|found| *found == event(found.filter)), "{popped:?}");
    });
}
