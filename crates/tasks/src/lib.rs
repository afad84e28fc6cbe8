//! Tasks of a team whose threads live on several nodes.
//!
//! Each node has the tasks that its threads make, in a [`Crew`] for each team: a queue, and counts of what is not finished. A
//! task's parent, its group and the tasks that it depends on are on the node that made it, because one thread makes all
//! children of a task. Threads take tasks from their own node's queue. A node whose threads wait at the barrier in vain asks
//! the others for tasks; whoever has more gives it some. A task that was given away has a record on both nodes: the thief
//! tells the other when the body has ended, and when all that the task has made has ended too.
//!
//! # Why no barrier passes before the tasks are finished
//!
//! A node counts, in its own *ledger*, the tasks that its threads have made in their implicit tasks, and all descendants of
//! these that were made on this node. A task counts until its body has ended, or, if it was given away, until the thief reports
//! that it has ended with all its descendants: the thief counts those in a ledger of this one task, from the moment that it
//! gets it. A thread arrives at a barrier only when its node's own ledger is at 0.
//!
//! Let a task be unfinished, and `C` the thread that made its first ancestor in an implicit task. A descendant is made while its
//! parent counts, and in the parent's ledger, so that this ledger does not come to 0 in between; a task that was given away
//! counts where it was made as long as its ledger at the thief is not at 0. By induction the ledger of `C`'s node has not been
//! at 0 since `C` made that ancestor. `C` did so before it came to the barrier, and has not arrived. So when all have
//! arrived, no task is unfinished, and none is left that could make one.
//!
//! # Why nobody waits for ever
//!
//! Threads that have arrived run tasks too. A thread that finds nothing to do leaves its waker, in the same step; whoever queues a
//! task wakes one, and one that is awake takes tasks until there are none. So a task in the queue is run: at the latest by the
//! thread that made it, which comes to a wait for it, or to the barrier.
//!
//! A task that was given away is begun at once. It is given to a node whose thread waits at the barrier of this *epoch* (the part
//! of the team's life between two barriers) with nothing to do: the barrier does not pass before the task is finished, so the
//! thread is still there, and takes such tasks first. If it has found something else meanwhile, the task goes back. A task
//! that stayed in the thief's queue could be awaited by the only threads there that might run it.
//!
//! A thread that waits within a task runs children of that task only (or tasks of the group for which it waits), so what it
//! waits for are descendants. Tasks that have begun wait for tasks that have begun later, or that are in a queue: there is no
//! circle.
//!
//! A thread at the barrier runs tasks of its own epoch only: those of the next one, which a thread of its node may make that has
//! seen earlier that the barrier is passed, could be at other barriers, while this thread does not know that it has passed this one.
//!
//! A task with an event counts until the event is fulfilled, too: its record stays on the node that made it, as that of a task that was
//! given away. Cancelled tasks are taken and finished like others, but for their bodies.
//!
//! `tests/model.rs` tries all schedules of small programs.

#![forbid(unsafe_code)]

mod barrier;
mod cancel;
mod crew;
mod record;
mod slab;
mod stealing;

pub use barrier::AtBarrier;
pub use cancel::Cancel;
pub use crew::{Crew, Effects, Next, Run};
pub use record::{AwayId, Dependence, GroupId, Scope, TaskId, Work, conflict};
pub use stealing::{Gift, Report};
