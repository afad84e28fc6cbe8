//! A piece of work that the threads of a team divide.

use super::schedule::{Kind, Loop, Schedule};
use super::sync;
use std::ptr::null_mut;

/// A piece of work, in shared memory. What is not fixed from the start is touched with the team's lock held.
#[repr(C)]
pub struct Share {
    pub next_share: *mut Self,
    /// The how manieth of its region.
    pub sequence: u64,
    /// Threads that are done with it.
    pub left: u32,
    pub work: Loop,
    pub schedule: Schedule,
    /// The first iteration that nobody was given.
    pub next: u64,
    pub ordered: bool,
    /// The iteration that ordered parts have come to.
    pub turn: u64,
    /// What the one thread of a `single` has for the others.
    pub copy: usize,
}

impl Share {
    /// A loop.
    pub fn of_loop(work: Loop, schedule: Schedule, ordered: bool) -> Self {
        Self {
            next_share: null_mut(),
            sequence: 0,
            left: 0,
            work,
            schedule,
            next: 0,
            ordered,
            turn: 0,
            copy: 0,
        }
    }

    /// So many sections, numbered from 1.
    pub fn of_sections(count: u32) -> Self {
        let work = Loop::signed(1, i64::from(count) + 1, 1);
        Self::of_loop(work, Schedule { kind: Kind::Dynamic, chunk: 1 }, false)
    }

    /// What the team begins its region with.
    pub fn first(self) -> *mut Self {
        sync::create(Self { sequence: 1, ..self })
    }
}
