//! A thread as a member of a team: it enters a region, runs the body, and leaves.

use super::affinity;
use super::assignment::Assignment;
use super::cancel;
use super::context::{self, Context};
use super::sync;
use super::task;
use super::task_wait;
use super::team::Team;
use super::times::{self, Ends};
use libc::c_void;

/// The outlined body of a region.
pub(super) type Body = unsafe extern "C" fn(*mut c_void);

/// Enters a region as thread `number`.
pub(super) fn come(assignment: &Assignment, number: u32) {
    let Assignment { team, shape, sequence, ring, dispatched, controls, league, first, .. } = *assignment;
    let (settled, begun, epoch, dispatched_settled) = (sequence, sequence, sequence, dispatched);
    let (region, since) = (assignment.body(), times::now());
    let context = Context::new(team, shape, number, controls);
    let context = Context { league, sequence, settled, begun, epoch, region, since, ..context };
    let mut context = Context { ring, dispatched, dispatched_settled, ..context };
    if let Some(first) = first {
        context.enter(first);
    }
    context::set(context);
    affinity::show();
}

/// Waits for the other threads at the end of a region.
pub(super) fn leave() {
    barrier(Ends::Region);
    if cancel::was_region_cancelled() {
        // Others may have met this thread at another barrier of the region.
        barrier(Ends::Region);
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
pub(super) fn barrier(ends: Ends) {
    let context = context::get();
    let Context { team, shape, .. } = context;
    if shape.threads == 1 && !shape.tasking {
        return;
    }
    let barrier = Team::barrier_of(team);
    let arrived = times::now().filter(|_| shape.threads > 1);
    if shape.tasking {
        task_wait::barrier(barrier);
    } else {
        sync::meet(barrier, shape.threads);
    }
    let since = arrived.and_then(|arrived| times::record(&context, ends, arrived));
    context::update(|context| {
        context.settle();
        (context.since, context.dealt, context.ended) = (since, false, 0);
    });
}
