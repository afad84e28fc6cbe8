//! A piece of work that the threads of a team divide.

use super::schedule::{Kind, Loop, Schedule};
use super::sync;
use std::ptr::null_mut;

/// A work-sharing construct, in shared memory. Mutable members are accessed with the team's lock held.
#[repr(C)]
pub(super) struct Share {
    pub next_share: *mut Self,
    /// The how manieth of its region.
    pub sequence: u64,
    /// Threads that have left it.
    pub left: u32,
    pub work: Loop,
    pub schedule: Schedule,
    /// The first iteration that was not handed out.
    pub next: u64,
    pub ordered: bool,
    /// The next iteration of ordered parts.
    pub turn: u64,
    /// The data of a `single` with copyprivate.
    pub copy: usize,
}

impl Share {
    /// A loop.
    pub(super) fn of_loop(work: Loop, schedule: Schedule, ordered: bool) -> Self {
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

    /// `count` sections, numbered from 1.
    pub(super) fn of_sections(count: u32) -> Self {
        let work = Loop::signed(1, i64::from(count) + 1, 1);
        Self::of_loop(work, Schedule { kind: Kind::Dynamic, chunk: 1 }, false)
    }

    /// Makes it the first construct of a new region.
    pub(super) fn first(self) -> *mut Self {
        sync::create(Self { sequence: 1, ..self })
    }
}
