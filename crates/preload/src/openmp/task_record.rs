//! The record of a task, in shared memory.

use std::ptr::null_mut;

/// A task, or the implicit task of a thread, in shared memory. Accessed with the team's lock held, except its
/// function and arguments.
#[repr(C)]
pub(super) struct Task {
    pub next: *mut Self,
    pub parent: *mut Self,
    pub group: *mut Group,
    pub function: usize,
    /// The copy of its arguments, which it owns; may be null.
    pub data: *mut u8,
    /// It is final: its children run at once.
    pub last: bool,
    pub finished: bool,
    /// Children that are not finished.
    pub children: usize,
    /// Its children that have dependences and are not finished, linked through `sibling`.
    pub dependent: *mut Self,
    pub sibling: *mut Self,
    pub dependences: *mut Dependence,
    pub count: usize,
    /// The number of tasks that must finish before this one, and the tasks that follow it.
    pub blockers: usize,
    pub followers: *mut Follower,
}

/// The tasks of a `taskgroup`, in shared memory.
#[repr(C)]
pub(super) struct Group {
    pub outer: *mut Self,
    /// Tasks that are not finished.
    pub unfinished: usize,
    /// What describes its reductions; null for none.
    pub reductions: *mut usize,
}

impl Task {
    pub(super) fn new(parent: *mut Self, group: *mut Group) -> Self {
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

    /// Its dependences.
    pub(super) fn dependences(&self) -> &[Dependence] {
        if self.dependences.is_null() {
            return &[];
        }
        // SAFETY: the list was made with so many entries, and lives as long as the task.
        unsafe { std::slice::from_raw_parts(self.dependences, self.count) }
    }
}

/// A dependence of a task.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Dependence {
    pub address: usize,
    /// It is `out` or `inout`: the task cannot run beside others with the address.
    pub changes: bool,
}

/// A task that waits for another one.
#[repr(C)]
pub(super) struct Follower {
    pub next: *mut Self,
    pub task: *mut Task,
}
