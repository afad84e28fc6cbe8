//! A thread as a member of a team: it enters a region, runs the body, and leaves.

use super::affinity;
use super::assignment::Assignment;
use super::cancel;
use super::context::{self, Context};
use super::sync;
use super::task;
use super::task_wait;
use super::team::Team;
use libc::c_void;

/// The outlined body of a region.
pub(super) type Body = unsafe extern "C" fn(*mut c_void);

/// Enters a region as thread `number`.
pub(super) fn come(assignment: &Assignment, number: u32) {
    let Assignment { team, shape, sequence, controls, league, first, .. } = *assignment;
    let context = Context::new(team, shape, number, controls);
    let (next, share) = match first {
        Some(first) => (sequence + 1, Some(first.numbered(sequence + 1))),
        None => (sequence, None),
    };
    let (settled, begun, epoch) = (sequence, sequence, sequence);
    context::set(Context { league, share, sequence: next, settled, begun, epoch, ..context });
    affinity::show();
}

/// Waits for the other threads at the end of a region.
pub(super) fn leave() {
    barrier();
    if cancel::was_region_cancelled() {
        // Others may have met this thread at another barrier of the region.
        barrier();
        cancel::clear();
    }
    task::end();
}

/// Does another thread's part in a region.
pub(super) fn take_part(assignment: &Assignment, number: u32) {
    let before = context::get();
    come(assignment, number);
    // SAFETY: the thread that has begun the region passes a function and its argument.
    unsafe {
        let function: Body = std::mem::transmute(assignment.function);
        function(assignment.data());
    }
    leave();
    context::set(before);
}

/// Waits for all threads of the team, and for all its tasks.
pub(super) fn barrier() {
    let Context { team, shape, sequence, epoch, .. } = context::get();
    if shape.threads == 1 && !shape.tasking {
        return;
    }
    let barrier = Team::barrier_of(team);
    if shape.tasking {
        task_wait::barrier(barrier);
    } else {
        sync::meet(barrier, shape.threads);
    }
    context::update(|context| (context.settled, context.epoch) = (sequence, epoch + 1));
}
