//! Tasks that wait for a thread, in the order in which they became ready.

use super::task_record::Task;
use std::ptr::null_mut;

/// A list of tasks, linked through them. Used with the team's lock held.
#[repr(C)]
pub(super) struct Queue {
    head: *mut Task,
    tail: *mut Task,
}

impl Default for Queue {
    fn default() -> Self {
        Self { head: null_mut(), tail: null_mut() }
    }
}

impl Queue {
    /// Appends a task.
    ///
    /// # Safety
    /// It is in no queue, and lives until it is taken.
    pub(super) unsafe fn push(&mut self, task: *mut Task) {
        // SAFETY: tasks in the queue live.
        unsafe {
            (*task).next = null_mut();
            if self.tail.is_null() {
                self.head = task;
            } else {
                (*self.tail).next = task;
            }
        }
        self.tail = task;
    }

    /// Takes the first wanted task; null if there is none.
    pub(super) fn take(&mut self, wanted: impl Fn(&Task) -> bool) -> *mut Task {
        let (mut before, mut task) = (null_mut::<Task>(), self.head);
        // SAFETY: tasks in the queue live.
        unsafe {
            while !task.is_null() && !wanted(&*task) {
                (before, task) = (task, (*task).next);
            }
            if !task.is_null() {
                if before.is_null() {
                    self.head = (*task).next;
                } else {
                    (*before).next = (*task).next;
                }
                if self.tail == task {
                    self.tail = before;
                }
            }
        }
        task
    }
}
