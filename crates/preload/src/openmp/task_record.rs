//! What the threads of a team know of a task, in shared memory.

use std::ptr::null_mut;

/// A task, or what stands for the work of a thread that has made tasks, in shared memory. Used with the team's lock
/// held, but for what it is to run.
#[repr(C)]
pub struct Task {
    pub next: *mut Self,
    pub parent: *mut Self,
    pub group: *mut Group,
    pub function: usize,
    /// The copy of its arguments; its own if it is not null.
    pub data: *mut u8,
    /// Its children are run at once.
    pub last: bool,
    pub finished: bool,
    /// Children that are not finished.
    pub children: usize,
    /// Its children that have dependences and are not finished, linked through `sibling`.
    pub dependent: *mut Self,
    pub sibling: *mut Self,
    pub dependences: *mut Dependence,
    pub count: usize,
    /// Tasks that must be finished before this one, and the other way round.
    pub blockers: usize,
    pub followers: *mut Follower,
}

/// The tasks of a `taskgroup`, in shared memory.
#[repr(C)]
pub struct Group {
    pub outer: *mut Self,
    /// Tasks that are not finished.
    pub unfinished: usize,
}

impl Task {
    pub fn new(parent: *mut Self, group: *mut Group) -> Self {
        Self {
            next: null_mut(),
            parent,
            group,
            function: 0,
            data: null_mut(),
            last: false,
            finished: false,
            children: 0,
            dependent: null_mut(),
            sibling: null_mut(),
            dependences: null_mut(),
            count: 0,
            blockers: 0,
            followers: null_mut(),
        }
    }

    /// What it depends on.
    pub fn dependences(&self) -> &[Dependence] {
        if self.dependences.is_null() {
            return &[];
        }
        // SAFETY: the list was made with so many entries, and lives as long as the task.
        unsafe { std::slice::from_raw_parts(self.dependences, self.count) }
    }
}

/// What a task depends on.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dependence {
    pub address: usize,
    /// It changes what is there, so that it cannot run beside others that use it.
    pub changes: bool,
}

/// A task that waits for another one.
#[repr(C)]
pub struct Follower {
    pub next: *mut Self,
    pub task: *mut Task,
}
