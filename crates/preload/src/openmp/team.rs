//! The threads that run one parallel region.

use super::league::League;
use super::queue::Queue;
use super::schedule::Schedule;
use super::settings;
use super::share::Share;
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

/// A team, in shared memory. Mutable members are accessed with its lock held.
#[repr(C)]
pub(super) struct Team {
    pub lock: Name,
    /// Signalled when a condition may have changed that threads of the team wait for.
    pub changed: Name,
    pub threads: u32,
    /// The nesting depth of the region, including itself, and the number of those with several threads.
    pub level: u32,
    pub active: u32,
    /// The team that the thread is of that began the region; null outside all regions.
    pub parent: *mut Self,
    pub number_in_parent: u32,
    pub function: usize,
    pub data: usize,
    pub controls: Controls,
    /// Where the thread is that began the region.
    pub league: League,
    /// The work that the region begins with; null for none.
    pub first: *mut Share,
    /// The pieces of work that not all threads are done with.
    pub shares: *mut Share,
    /// There may be queued tasks: threads that wait for the team run them.
    pub tasking: bool,
    /// Threads at the barrier, and how often all were.
    pub arrived: u32,
    pub phase: u32,
    /// Threads that wait for a signal.
    pub idle: u32,
    /// Tasks that are not finished.
    pub unfinished: usize,
    pub ready: Queue,
}

impl Team {
    /// A team that does nothing yet, inside the region of `parent`.
    pub(super) fn new(
        threads: u32,
        parent: *mut Self,
        number_in_parent: u32,
        controls: Controls,
        tasking: bool,
    ) -> Self {
        // SAFETY: a parent lives as long as the regions inside it; its levels never change.
        let (level, active) =
            unsafe { parent.as_ref() }.map_or((0, 0), |parent| (parent.level, parent.active));
        Self {
            lock: Name::default(),
            changed: Name::default(),
            threads,
            level: level + 1,
            active: active + u32::from(threads > 1),
            parent,
            number_in_parent,
            function: 0,
            data: 0,
            controls,
            league: League::ALONE,
            first: null_mut(),
            shares: null_mut(),
            tasking: tasking && threads > 1,
            arrived: 0,
            phase: 0,
            idle: 0,
            unfinished: 0,
            ready: Queue::default(),
        }
    }

    /// The team outside all regions: one thread by itself.
    pub(super) fn initial() -> Self {
        Self { level: 0, ..Self::new(1, null_mut(), 0, Controls::at(0), false) }
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
