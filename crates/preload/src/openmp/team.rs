//! The threads that run one parallel region.

use super::common::Common;
use super::queue::Queue;
use super::schedule::Schedule;
use super::settings;
use super::sync::{self, Name};
use std::ptr::null_mut;

/// The settings that a thread passes to threads that it starts.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Controls {
    /// How many threads the next region gets.
    pub threads: u32,
    pub dynamic: bool,
    /// How many levels of regions may have several threads.
    pub levels: u32,
    pub schedule: Schedule,
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
        Self {
            threads,
            level: self.level + 1,
            active: self.active + u32::from(several),
            tasking: tasking && several,
        }
    }
}

/// A team, in shared memory. Mutable members are accessed with its lock held.
#[repr(C)]
pub(super) struct Team {
    pub lock: Name,
    /// Signalled when a condition may have changed that threads of the team wait for.
    pub changed: Name,
    /// Where the threads meet.
    pub barrier: Name,
    pub shape: Shape,
    /// The team that the thread is of that began the region; null outside all regions.
    pub parent: *mut Self,
    pub number_in_parent: u32,
    /// Its address names the announcements of `single` with copyprivate.
    pub copies: Name,
    /// Threads at the barrier of a team with tasks, and how often all were.
    pub arrived: u32,
    pub phase: u32,
    /// Threads that wait for a signal.
    pub idle: u32,
    /// Tasks that are not finished.
    pub unfinished: usize,
    pub ready: Queue,
    /// What threads have in common in the constructs that they are in.
    pub commons: *mut Common,
}

impl Team {
    /// A team that does nothing yet, inside the region of `parent`.
    pub(super) fn new(shape: Shape, parent: *mut Self, number_in_parent: u32) -> Self {
        Self {
            lock: Name::default(),
            changed: Name::default(),
            barrier: Name::default(),
            shape,
            parent,
            number_in_parent,
            copies: Name::default(),
            arrived: 0,
            phase: 0,
            idle: 0,
            unfinished: 0,
            ready: Queue::default(),
            commons: null_mut(),
        }
    }

    /// The team outside all regions: one thread by itself.
    pub(super) fn initial() -> Self {
        Self::new(Shape::ALONE, null_mut(), 0)
    }
}

/// Waits until something has changed in a team whose lock the caller holds.
///
/// # Safety
/// The team is the calling thread's.
pub(super) unsafe fn wait(team: *mut Team) {
    // SAFETY: the caller holds the lock, before and after.
    unsafe {
        (*team).idle += 1;
        sync::wait(&raw const (*team).changed, &raw const (*team).lock);
        (*team).idle -= 1;
    }
}

/// Wakes the waiting threads of a team whose lock the caller holds.
///
/// # Safety
/// The team is the calling thread's.
pub(super) unsafe fn wake(team: *mut Team) {
    // SAFETY: the caller holds the lock.
    unsafe {
        if (*team).idle > 0 {
            sync::wake(&raw const (*team).changed);
        }
    }
}
