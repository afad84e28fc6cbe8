//! The threads that run one parallel region.

use super::common::Common;
use super::schedule::Schedule;
use super::settings;
use super::sync::Name;
use std::mem::offset_of;
use std::ptr::null_mut;

/// The settings that a thread passes to threads that it starts.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Controls {
    /// How many threads the next region gets.
    pub threads: u32,
    pub dynamic: bool,
    /// How many levels of regions may have several threads.
    pub levels: u32,
    pub schedule: Schedule,
    /// The most threads that a region can have.
    pub limit: u32,
    /// The default allocator; 0 for that of the environment.
    pub allocator: usize,
}

impl Controls {
    /// The settings of the environment, for regions at a level.
    pub(super) fn at(level: u32) -> Self {
        let settings = settings::get();
        let threads = settings.threads.get(level as usize).or(settings.threads.last());
        Self {
            threads: threads.copied().unwrap_or(1),
            dynamic: settings.dynamic,
            levels: settings.levels,
            schedule: settings.schedule,
            limit: settings.limit,
            allocator: 0,
        }
    }
}

/// What each thread of a team knows of it without looking into shared memory.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub threads: u32,
    /// The nesting depth of the region, including itself, and the number of those with several threads.
    pub level: u32,
    pub active: u32,
    /// There may be queued tasks: threads that wait for the team run them.
    pub tasking: bool,
}

impl Shape {
    /// One thread outside all regions.
    pub(super) const ALONE: Self = Self { threads: 1, level: 0, active: 0, tasking: false };

    /// A region inside this one.
    pub(super) fn inside(self, threads: u32, tasking: bool) -> Self {
        let several = threads > 1;
        Self { threads, level: self.level + 1, active: self.active + u32::from(several), tasking }
    }
}

/// A team, in shared memory.
#[repr(C)]
pub(super) struct Team {
    /// Where the threads meet.
    pub barrier: Name,
    pub shape: Shape,
    /// The team that the thread is of that began the region; null outside all regions.
    pub parent: *mut Self,
    pub number_in_parent: u32,
    /// Its address names the announcements of `single` with copyprivate.
    pub copies: Name,
    /// What threads have in common in the constructs that they are in.
    pub commons: *mut Common,
}

impl Team {
    /// A team that does nothing yet, inside the region of `parent`.
    pub(super) fn new(shape: Shape, parent: *mut Self, number_in_parent: u32) -> Self {
        Self {
            barrier: Name::default(),
            shape,
            parent,
            number_in_parent,
            copies: Name::default(),
            commons: null_mut(),
        }
    }

    /// What names the barrier of a team. Only addresses are used, here and below: the team's page stays where it is.
    pub(super) fn barrier_of(team: *mut Self) -> *const Name {
        team.wrapping_byte_add(offset_of!(Self, barrier)).cast_const().cast()
    }

    /// What names the announcements of `single` in a team.
    pub(super) fn copies_of(team: *mut Self) -> *const Name {
        team.wrapping_byte_add(offset_of!(Self, copies)).cast_const().cast()
    }

    /// The team outside all regions: one thread by itself.
    pub(super) fn initial() -> Self {
        Self::new(Shape::ALONE, null_mut(), 0)
    }
}
