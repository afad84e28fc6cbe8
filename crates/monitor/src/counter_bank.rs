//! The counter bank: filters and counters. Threads count without a lock, also while filters change.
//!
//! Two copies of the filter table exist, of which one is in force. A change is written to the other copy and put in
//! force by incrementing the *generation*. A counting thread reads the generation before and after it searches for a
//! filter, and repeats the search if the generation has changed (a sequence lock). So a counting thread never waits
//! for a lock, and never matches a transaction against half of a change. A count that began before a change may
//! arrive after it.

use crate::primitive::{AtomicU64, Ordering, fence};
use crate::sizes::{COUNTERS, MOST_FILTERS, SECONDARIES};
use crate::threshold_events::{ThresholdEvent, ThresholdEvents};
use crate::{Directions, Filter, Kinds, Partition, Threshold, Transaction};
use gondwana_page::to_usize;

/// One row of a copy of the filter table.
#[derive(Default)]
struct Row {
    start: AtomicU64,
    end: AtomicU64,
    /// The greatest `end` of this row and the rows before it.
    reach: AtomicU64,
    /// See [`pack`].
    what: AtomicU64,
    threshold: AtomicU64,
    /// See [`Partition::pack`]; 0 if the whole range is counted.
    partition: AtomicU64,
    /// The kinds that each secondary counter takes from this filter: 16 bits for each, four in a word.
    secondaries: [AtomicU64; SECONDARIES / 4],
}

/// One copy of the filter table: rows by ascending start.
struct Copy {
    rows: [Row; MOST_FILTERS],
    count: AtomicU64,
}

/// A filter that is set, from which table rows are made.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub filter: Filter,
    pub number: u8,
    /// The counter of its first unit.
    pub first: u32,
    /// Set by adaptive refinement: the filter gives way to filters that a user requests.
    pub own: bool,
    pub secondaries: [Kinds; SECONDARIES],
}

/// Kinds, directions, unit, number and first counter of a filter.
fn pack(entry: &Entry) -> u64 {
    let directions = match entry.filter.directions {
        Directions::Out => 1,
        Directions::In => 2,
        Directions::Both => 3_u64,
    };
    u64::from(entry.filter.kinds.bits())
        | directions << 16
        | u64::from(entry.filter.unit) << 18
        | u64::from(entry.number) << 24
        | u64::from(entry.first) << 32
}

/// The flag of [`Threshold::Every`].
const EVERY: u64 = 1 << 63;

/// The result of a search in the table.
struct Match {
    counter: usize,
    number: u8,
    address: u64,
    threshold: u64,
    secondaries: u16,
}

/// The counting side of a bank. [`BankConfiguration`](crate::BankConfiguration) sets its filters and reads its
/// counters.
pub struct CounterBank {
    generation: AtomicU64,
    copies: [Copy; 2],
    counters: Box<[AtomicU64]>,
    secondaries: [AtomicU64; SECONDARIES],
    events: ThresholdEvents,
}

impl Default for CounterBank {
    fn default() -> Self {
        Self {
            generation: AtomicU64::new(0),
            copies: Default::default(),
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            secondaries: Default::default(),
            events: ThresholdEvents::default(),
        }
    }
}

impl CounterBank {
    /// Counts a transaction if it matches a filter. Any thread may call this at any time.
    pub fn count(&self, transaction: &Transaction) {
        let Some(found) = self.find(transaction) else { return };
        let count = self.counters[found.counter].fetch_add(1, Ordering::Relaxed) + 1;
        let threshold = match found.threshold {
            0 => None,
            every if every & EVERY != 0 => Some(Threshold::Every(every & !EVERY)),
            once => Some(Threshold::Once(once)),
        };
        if threshold.is_some_and(|threshold| threshold.is_met(count)) {
            self.events.push(ThresholdEvent { filter: found.number, address: found.address, count });
        }
        let mut left = found.secondaries;
        while left != 0 {
            self.secondaries[left.trailing_zeros() as usize].fetch_add(1, Ordering::Relaxed);
            left &= left - 1;
        }
    }

    fn find(&self, transaction: &Transaction) -> Option<Match> {
        loop {
            let generation = self.generation.load(Ordering::Acquire);
            let found = self.copies[(generation & 1) as usize].find(transaction);
            // A thread that has seen a part of a later change sees the generation of that change, too.
            fence(Ordering::Acquire);
            if self.generation.load(Ordering::Relaxed) == generation {
                return found;
            }
        }
    }

    /// Takes the next threshold event, if there is one. Only one thread at a time may call this.
    pub fn next_event(&self) -> Option<ThresholdEvent> {
        self.events.pop()
    }

    /// The number of events that were lost because the queue was full.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.events.lost()
    }

    /// The values of `count` counters from `first` on.
    pub(crate) fn read(&self, first: u32, count: usize) -> impl Iterator<Item = u64> + '_ {
        self.counters[first as usize..][..count].iter().map(|counter| counter.load(Ordering::Relaxed))
    }

    /// Sets counters to 0.
    pub(crate) fn clear(&self, first: u32, count: usize) {
        self.counters[first as usize..][..count]
            .iter()
            .for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// The secondary counter with this number.
    pub(crate) fn secondary(&self, number: usize) -> &AtomicU64 {
        &self.secondaries[number]
    }

    /// Puts these filters, by ascending start, in force. Only one thread at a time may call this.
    pub(crate) fn put_in_force(&self, entries: &[Entry]) {
        let next = self.generation.load(Ordering::Relaxed) + 1;
        // A thread that still reads this copy must not see a part of the change without the new generation.
        fence(Ordering::Release);
        self.copies[(next & 1) as usize].write(entries);
        self.generation.store(next, Ordering::Release);
    }
}

impl Default for Copy {
    fn default() -> Self {
        Self { rows: std::array::from_fn(|_| Row::default()), count: AtomicU64::new(0) }
    }
}

impl Copy {
    fn write(&self, entries: &[Entry]) {
        let mut reach = 0;
        for (row, entry) in self.rows.iter().zip(entries) {
            let store = |to: &AtomicU64, value| to.store(value, Ordering::Relaxed);
            reach = reach.max(entry.filter.end);
            store(&row.start, entry.filter.start);
            store(&row.end, entry.filter.end);
            store(&row.reach, reach);
            store(&row.what, pack(entry));
            store(
                &row.threshold,
                match entry.filter.threshold {
                    None => 0,
                    Some(Threshold::Once(at)) => at & !EVERY,
                    Some(Threshold::Every(step)) => step | EVERY,
                },
            );
            store(&row.partition, entry.filter.partition.map_or(0, Partition::pack));
            for (word, kinds) in row.secondaries.iter().zip(entry.secondaries.chunks(4)) {
                let bits = kinds.iter().rev().fold(0, |bits, kinds| bits << 16 | u64::from(kinds.bits()));
                store(word, bits);
            }
        }
        self.count.store(entries.len() as u64, Ordering::Relaxed);
    }

    /// The filter that a transaction matches; filters do not overlap, so at most one does.
    fn find(&self, transaction: &Transaction) -> Option<Match> {
        let load = |from: &AtomicU64| from.load(Ordering::Relaxed);
        let address = transaction.address;
        let rows = &self.rows[..to_usize(load(&self.count)).min(MOST_FILTERS)];
        let mut index = rows.partition_point(|row| load(&row.start) <= address);
        while index > 0 && load(&rows[index - 1].reach) > address {
            index -= 1;
            let row = &rows[index];
            let what = load(&row.what);
            let means = Kinds::from_bits((what & 0xffff) as u16).contains(transaction.kind)
                && what >> 16 & 1 << transaction.direction as u64 != 0;
            let (start, end) = (load(&row.start), load(&row.end));
            if !means || !(start..end).contains(&address) {
                continue;
            }
            let (unit, offset) = ((what >> 18 & 63) as u8, address - start);
            let index = match Partition::unpack(load(&row.partition)) {
                None => offset >> unit,
                Some(partition) => partition.counter(offset, unit)?,
            };
            let counter = (what >> 32).saturating_add(index) as usize;
            let kind = transaction.kind as u32;
            let secondaries = (0..SECONDARIES)
                .filter(|number| {
                    load(&row.secondaries[number / 4]) >> (number % 4 * 16 + kind as usize) & 1 != 0
                })
                .fold(0, |set, number| set | 1 << number);
            // The row may be changing while this thread reads it. `find` of the bank then repeats the search; until
            // then the values only have to stay in range.
            return (counter < COUNTERS).then(|| Match {
                counter,
                number: (what >> 24 & 0xff) as u8,
                address: start + (offset >> unit << unit),
                threshold: load(&row.threshold),
                secondaries,
            });
        }
        None
    }
}
