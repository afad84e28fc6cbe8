//! Something that does one thing at a time: a bus, a memory bank, a controller, one direction of a link.

use crate::Time;

/// How many reserved intervals are kept; earlier ones than the oldest kept count as passed.
const KEPT: usize = 64;

/// In steps of so many intervals the place of a request is searched for.
const STEP: usize = 4;

/// The intervals of time for which a resource is reserved. Requests come nearly, not exactly, in the order of time: one
/// gets the first gap that is long enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    /// Disjoint, in order, no two adjacent; those before `first` are forgotten.
    intervals: Vec<(Time, Time)>,
    first: usize,
    /// Nothing is reserved before this.
    floor: Time,
    busy: Time,
    uses: u64,
}

impl Resource {
    /// Reserves `length` from `at` on or as soon as possible; returns when that begins.
    pub(crate) fn reserve(&mut self, at: Time, length: Time) -> Time {
        self.uses += 1;
        self.busy += length;
        if length == 0 {
            return at;
        }
        let mut start = at.max(self.floor);
        let mut index = self.first_after(start);
        while let Some(&(from, to)) = self.intervals.get(index) {
            if start + length <= from {
                break;
            }
            start = start.max(to);
            index += 1;
        }
        self.insert(index, start, start + length);
        start
    }

    /// The first interval that ends after a time, which is not before the floor.
    ///
    /// Requests come late by some intervals, few of them by many. How many cannot be predicted, so the host's processor counts
    /// the last steps without a branch.
    fn first_after(&self, time: Time) -> usize {
        let before = |index| self.intervals[..index].last_chunk::<STEP>();
        let later = |intervals: &[(Time, Time)]| {
            intervals.iter().map(|&(_, to)| usize::from(to > time)).sum::<usize>()
        };
        let mut index = self.intervals.len();
        while let Some(block) = before(index)
            && block[0].1 > time
        {
            index -= STEP;
        }
        // What is forgotten ends before the floor.
        index - before(index).map_or_else(|| later(&self.intervals[..index]), |block| later(block))
    }

    fn insert(&mut self, index: usize, start: Time, end: Time) {
        let joins_before = index > self.first && self.intervals[index - 1].1 == start;
        let joins_after = self.intervals.get(index).is_some_and(|after| after.0 == end);
        match (joins_before, joins_after) {
            (true, true) => {
                self.intervals[index - 1].1 = self.intervals[index].1;
                self.intervals.remove(index);
            }
            (true, false) => self.intervals[index - 1].1 = end,
            (false, true) => self.intervals[index].0 = start,
            (false, false) => {
                self.intervals.insert(index, (start, end));
                if self.intervals.len() - self.first > KEPT {
                    self.floor = self.intervals[self.first].1;
                    self.first += 1;
                }
                // All that are kept move once while each comes and goes once.
                if self.first == KEPT {
                    self.intervals.drain(..KEPT);
                    self.first = 0;
                }
            }
        }
    }

    /// For how long it has been reserved in all.
    pub(crate) fn busy(&self) -> Time {
        self.busy
    }

    /// How often.
    pub(crate) fn uses(&self) -> u64 {
        self.uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let mut bus = Resource::default();
        assert_eq!([bus.reserve(100, 10), bus.reserve(100, 10), bus.reserve(105, 10)], [100, 110, 120]);
        assert_eq!((bus.busy(), bus.uses()), (30, 3));
    }

    #[test]
    fn a_request_from_before_gets_a_gap_that_is_long_enough() {
        let mut bus = Resource::default();
        assert_eq!([bus.reserve(100, 10), bus.reserve(130, 10)], [100, 130]);
        assert_eq!(bus.reserve(95, 5), 95);
        assert_eq!(bus.reserve(95, 20), 110, "exactly the gap");
        assert_eq!(bus.reserve(95, 1), 140, "everything from 95 to 140 is reserved");
        assert_eq!(bus.reserve(10, 85), 10);
    }

    #[test]
    fn what_is_no_longer_kept_counts_as_passed() {
        let mut bus = Resource::default();
        for number in 0..200 {
            assert_eq!(bus.reserve(number * 10, 5), number * 10);
        }
        assert!(bus.reserve(0, 5) >= 1300, "the first gaps are forgotten");
    }
}
