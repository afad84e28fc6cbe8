//! Tasks that messages ask for and that start threads or wait for other nodes, deferred to the service thread.
//!
//! The C library starts threads. A thread of the program that happens to poll may be in the middle of that, and it reads
//! variables that a program with copies of them shares: the thread that receives could not wait for their pages. The
//! service thread, between two polls, can.

use crate::process_change::ProcessChange;
use crate::wire::{Ending, ThreadSpec};
use gondwana_coherence::sync::Ticket;
use gondwana_locks::lock;
use gondwana_topology::NodeId;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the service thread does between two polls.
#[derive(Debug)]
pub(crate) enum DeferredTask {
    /// Starts a thread of the program, for another node.
    Start { from: NodeId, ticket: Ticket, thread: ThreadSpec },
    /// Makes a change to this process that another node asks for.
    Apply { from: NodeId, ticket: Ticket, change: ProcessChange },
    /// Has the other nodes make a change that this process has made.
    TellOthers(ProcessChange),
    /// Starts a thread that makes calls for other nodes.
    StartCaller,
    /// Something of the runtime library of the program's language.
    Later(Vec<u64>),
    /// Ends the program, with this status, for a thread of another node.
    Exit(Ending, i32),
    /// Ends this node: the run ends.
    Close,
}

/// The tasks that wait, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct DeferredTasks {
    tasks: Mutex<VecDeque<DeferredTask>>,
    /// There may be some.
    any: AtomicBool,
}

impl DeferredTasks {
    /// Adds a task. The caller interrupts the service thread afterwards.
    pub(crate) fn add(&self, task: DeferredTask) {
        lock(&self.tasks).push_back(task);
        self.any.store(true, Ordering::Release);
    }

    /// True if there may be some.
    pub(crate) fn may_have_some(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Takes all tasks, also those that are added meanwhile, and passes each to `run` without the lock.
    pub(crate) fn run_all(&self, mut run: impl FnMut(DeferredTask)) {
        // A task that is added after this is announced after this.
        self.any.store(false, Ordering::Relaxed);
        loop {
            let Some(task) = lock(&self.tasks).pop_front() else { return };
            run(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_in_order_and_may_add_others() {
        let tasks = DeferredTasks::default();
        assert!(!tasks.may_have_some());
        tasks.add(DeferredTask::Exit(Ending::Exit, 0));
        tasks.add(DeferredTask::Exit(Ending::Exit, 1));
        assert!(tasks.may_have_some());
        let mut statuses = vec![];
        tasks.run_all(|task| {
            let DeferredTask::Exit(Ending::Exit, status) = task else { panic!("{task:?}") };
            statuses.push(status);
            if status == 0 {
                tasks.add(DeferredTask::Exit(Ending::Exit, 2));
            }
        });
        assert_eq!(statuses, [0, 1, 2]);
        // The one that was added meanwhile was announced, so the service thread looks once more.
        assert!(tasks.may_have_some());
        tasks.run_all(|task| panic!("{task:?}"));
        assert!(!tasks.may_have_some());
    }
}
