//! Constructs of OpenMP: what threads did before the barriers that end them, and how long they waited there.
//!
//! The threads of the program add up here; the monitor's thread takes the sums. While nothing is recorded, a barrier costs one
//! look at a flag.

use crate::numbers::nanoseconds;
use crate::{Node, Thread};
use gondwana_control::MAX_CHUNKS;
use gondwana_locks::lock;
use gondwana_recording::ConstructRecord;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most sums between two looks of the monitor's thread. What is more is added up as one construct.
const MOST: usize = 4096;

/// The most records in one chunk. A record takes at most 57 bytes: five variable-length numbers of 64 bits (10 each), one of 32
/// bits (5), and two bytes.
const RECORDS: usize = (MAX_CHUNKS / 2 - 64) / 57;

/// A construct of OpenMP that ends with a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Construct {
    /// An instruction of the call at its end, or the first one of the function of a parallel region.
    pub code: usize,
    /// The barrier is that at the end of a region.
    pub region: bool,
    /// Its work is dealt out while it runs.
    pub dealt: bool,
}

/// Several constructs.
const OTHERS: Construct = Construct { code: 0, region: false, dealt: false };

/// What the threads of this node have done in constructs since the monitor's thread has looked last.
#[derive(Debug, Default)]
pub(super) struct Constructs {
    on: AtomicBool,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums(HashMap<(Construct, u32), Sum>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    worked: u64,
    longest: u64,
    waited: u64,
}

impl Sums {
    fn add(&mut self, construct: Construct, thread: u32, worked: u64, waited: u64) {
        let mut key = (construct, thread);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            key.0 = OTHERS;
        }
        let sum = self.0.entry(key).or_default();
        sum.count += 1;
        sum.worked += worked;
        sum.longest = sum.longest.max(worked);
        sum.waited += waited;
    }

    /// What there is, in a fixed order; nothing is left.
    fn take(&mut self) -> Vec<ConstructRecord> {
        let record = |((construct, thread), sum): ((Construct, u32), Sum)| ConstructRecord {
            code: construct.code as u64,
            region: construct.region,
            dealt: construct.dealt,
            thread,
            count: sum.count,
            worked: sum.worked,
            longest: sum.longest,
            waited: sum.waited,
        };
        let mut records: Vec<ConstructRecord> = self.0.drain().map(record).collect();
        records.sort_unstable_by_key(|record| (record.code, record.region, record.dealt, record.thread));
        records
    }
}

impl Constructs {
    /// Adds up from now on, anew.
    pub(super) fn begin(&self) {
        lock(&self.sums).take();
        self.on.store(true, Ordering::Relaxed);
    }

    /// Adds nothing more up.
    pub(super) fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    /// Writes what has been added up since the last call.
    pub(super) fn write(&self, node: &Node) {
        let records = lock(&self.sums).take();
        for records in records.chunks(RECORDS) {
            node.put_record(&records.to_vec());
        }
    }
}

impl Node {
    /// The time, if constructs of OpenMP are recorded.
    #[inline]
    #[must_use]
    pub fn time_of_construct(&self) -> Option<Instant> {
        self.records_constructs().then(Instant::now)
    }

    /// True if constructs of OpenMP are recorded.
    #[inline]
    #[must_use]
    pub fn records_constructs(&self) -> bool {
        self.monitor.constructs.on.load(Ordering::Relaxed)
    }

    /// Records that the calling thread has worked in a construct, and waited at the barrier that ends it. It must not be interrupted.
    pub fn record_construct(&'static self, construct: Construct, worked: Duration, waited: Duration) {
        let thread = Thread::current(self).number();
        lock(&self.monitor.constructs.sums).add(construct, thread, nanoseconds(worked), nanoseconds(waited));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: Construct = Construct { code: 0x1000, region: false, dealt: true };

    #[test]
    fn the_times_of_a_thread_in_a_construct_are_added_up() {
        let mut sums = Sums::default();
        for (thread, worked, waited) in [(1, 30, 5), (0, 10, 25), (1, 20, 15)] {
            sums.add(LOOP, thread, worked, waited);
        }
        sums.add(Construct { region: true, ..LOOP }, 1, 7, 1);
        let records = sums.take();
        let all: Vec<_> = records
            .iter()
            .map(|it| (it.region, it.thread, it.count, it.worked, it.longest, it.waited))
            .collect();
        assert_eq!(all, [(false, 0, 1, 10, 10, 25), (false, 1, 2, 50, 30, 20), (true, 1, 1, 7, 7, 1)]);
        assert!(records.iter().all(|it| it.code == 0x1000 && it.dealt));
        assert!(sums.take().is_empty());
    }

    #[test]
    fn what_is_too_much_is_one_construct() {
        let mut sums = Sums::default();
        for code in 1..=MOST + 3 {
            sums.add(Construct { code, ..LOOP }, 0, 1, 2);
        }
        // One that has its sum keeps it.
        sums.add(Construct { code: 1, ..LOOP }, 0, 1, 2);
        let records = sums.take();
        assert_eq!(records.len(), MOST + 1);
        assert_eq!((records[0].code, records[0].count, records[0].waited), (0, 3, 6));
        assert_eq!((records[1].code, records[1].count), (1, 2));
    }
}
