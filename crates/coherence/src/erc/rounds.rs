//! Rounds of invalidations: what a release, or a page that moves, waits for.

use crate::{Violation, Waiter};
use gondwana_page::to_usize;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Round {
    /// Acknowledgements that have not come.
    missing: usize,
    waiters: Vec<Waiter>,
}

/// The rounds of this node, numbered from 1. They complete in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rounds {
    completed: u64,
    queue: VecDeque<Round>,
}

impl Rounds {
    /// True if the round of this number, and all before it, are complete.
    pub(super) fn is_complete(&self, number: u64) -> bool {
        number <= self.completed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The number that the next round gets.
    pub(super) fn next(&self) -> u64 {
        self.completed + 1 + self.queue.len() as u64
    }

    /// Begins a round that awaits so many acknowledgements, at least one.
    pub(super) fn begin(&mut self, missing: usize) {
        self.queue.push_back(Round { missing, waiters: Vec::new() });
    }

    /// Has a waiter resumed when all present rounds are complete. False if there are none.
    pub(super) fn await_all(&mut self, waiter: Waiter) -> bool {
        self.queue.back_mut().map(|last| last.waiters.push(waiter)).is_some()
    }

    /// An acknowledgement has come; returns whom to resume, if rounds are complete now.
    pub(super) fn acknowledge(&mut self, number: u64) -> Result<Option<Vec<Waiter>>, Violation> {
        let unknown = Violation::UnknownFlush { flush: number };
        let index = number.checked_sub(self.completed + 1).ok_or(unknown.clone())?;
        let round = self.queue.get_mut(to_usize(index)).ok_or(unknown.clone())?;
        round.missing = round.missing.checked_sub(1).ok_or(unknown)?;
        let mut resumed = None;
        while let Some(round) = self.queue.pop_front_if(|round| round.missing == 0) {
            self.completed += 1;
            resumed.get_or_insert_with(Vec::new).extend(round.waiters);
        }
        Ok(resumed)
    }
}
