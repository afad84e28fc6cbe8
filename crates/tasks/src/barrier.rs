//! The barrier of a team with tasks.

use crate::crew::{Crew, Run};
use crate::record::OWN;

/// What a thread does at the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtBarrier {
    /// It runs a task and asks again.
    Run(Run),
    /// It arrives, and asks again as one that has arrived.
    Arrive,
    /// It waits until the barrier is passed, or it is woken; then it asks again.
    Wait,
}

impl<W: Copy + PartialEq> Crew<W> {
    /// A thread is at the barrier that ends an epoch.
    pub fn at_barrier(&mut self, epoch: u64, arrived: bool, waker: W) -> AtBarrier {
        self.enter(epoch);
        if self.epoch > epoch {
            // The barrier is passed: the tasks that are here now may run only when the thread knows that too.
            return AtBarrier::Wait;
        }
        if let Some(task) = self.stolen.pop_front().or_else(|| self.ready.pop_front()) {
            return AtBarrier::Run(self.begin(task));
        }
        if !arrived && self.ledgers[OWN.0].unfinished == 0 {
            return AtBarrier::Arrive;
        }
        self.idle.retain(|(other, _)| *other != waker);
        self.idle.push((waker, arrived));
        AtBarrier::Wait
    }
}
