//! A piece of work that the threads of a team divide.

use super::schedule::{Kind, Loop, Schedule};

/// A work-sharing construct, as each thread that is in it knows it. What is given out, the node knows that manages the team.
#[derive(Clone, Copy)]
pub(super) struct Share {
    /// Its number among those of the team.
    pub number: u64,
    pub work: Loop,
    pub schedule: Schedule,
    pub ordered: bool,
}

impl Share {
    /// A loop.
    pub(super) fn of_loop(work: Loop, schedule: Schedule, ordered: bool) -> Self {
        Self { number: 0, work, schedule, ordered }
    }

    /// `count` sections, numbered from 1.
    pub(super) fn of_sections(count: u32) -> Self {
        let work = Loop::signed(1, i64::from(count) + 1, 1);
        Self::of_loop(work, Schedule { kind: Kind::Dynamic, chunk: 1, rising: true }, false)
    }

    /// True if it is dealt out while it runs.
    pub(super) fn is_dealt(&self) -> bool {
        self.schedule.is_dealt()
    }

    /// True if a thread may get iterations that come before those that it has got.
    pub(super) fn is_reordered(&self) -> bool {
        self.is_dealt() && !self.ordered && !self.schedule.rising
    }

    /// With its number.
    pub(super) fn numbered(self, number: u64) -> Self {
        Self { number, ..self }
    }
}
