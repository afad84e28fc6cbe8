use std::collections::VecDeque;

/// Arrivals that were reported to the parent and not yet released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reported {
    total: u32,
    /// How many were reported at how many threads an episode, first come first. Neighbours differ in the latter.
    batches: VecDeque<(u32, u32)>,
}

impl Reported {
    /// How many.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// How many, from the first on, were reported at `count` threads an episode.
    pub(super) fn first(&self, count: u32) -> u32 {
        self.batches.front().filter(|batch| batch.0 == count).map_or(0, |batch| batch.1)
    }

    /// More are reported.
    pub(super) fn add(&mut self, count: u32, threads: u32) {
        self.total += threads;
        match self.batches.back_mut() {
            Some((last, number)) if *last == count => *number += threads,
            _ => self.batches.push_back((count, threads)),
        }
    }

    /// The first ones, or all if they are fewer, go on.
    pub(super) fn release(&mut self, threads: u32) {
        let mut left = threads;
        while let Some((_, number)) = self.batches.front_mut() {
            let part = left.min(*number);
            *number -= part;
            self.total -= part;
            left -= part;
            if *number > 0 {
                return;
            }
            self.batches.pop_front();
        }
    }
}
