//! A piece of work that the threads of a team divide.

use super::schedule::{Kind, Loop, Schedule};
use gondwana_node::{DispatchRing, Part};

/// A work-sharing construct, as each thread that is in it knows it. What is given out, the node knows that manages the team.
#[derive(Clone, Copy)]
pub(super) struct Share {
    /// Its number among those of the team.
    pub number: u64,
    pub work: Loop,
    pub schedule: Schedule,
    pub ordered: bool,
    /// The number of its dispatch buffer among those that the team's ring was used for; `None` if its iterations are given out by messages.
    pub buffer: Option<u64>,
}

impl Share {
    /// A loop.
    pub(super) fn of_loop(work: Loop, schedule: Schedule, ordered: bool) -> Self {
        Self { number: 0, work, schedule, ordered, buffer: None }
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

    /// The chunks that are divided in parts, of which each thread has one; `None` if iterations are given out in their order.
    pub(super) fn parted(&self) -> Option<u64> {
        let chunks = self.work.count.div_ceil(self.schedule.chunk.max(1));
        (self.is_reordered() && chunks <= Part::MOST).then_some(chunks)
    }

    /// True if it can have a dispatch buffer. Where parts are ordered, threads have to take turns by messages in any case.
    pub(super) fn fits_buffer(&self) -> bool {
        let (count, in_parts) = self.parted().map_or((self.work.count, false), |chunks| (chunks, true));
        self.is_dealt() && !self.ordered && DispatchRing::fits(count, in_parts)
    }
}
