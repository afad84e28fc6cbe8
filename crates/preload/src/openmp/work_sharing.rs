//! Work-sharing constructs: each thread of a team meets the same constructs in the same order, and may be ahead of
//! others.

use super::context::{self, Context};
use super::schedule::{self, Kind};
use super::share::Share;
use super::sync;
use super::team;
use std::ptr::null_mut;

/// Enters the next construct; the first thread creates it by `share`. True for the first thread.
pub(super) fn enter(share: impl FnOnce() -> Share) -> bool {
    let (team, context) = (context::team(), context::get());
    let sequence = context.sequence + 1;
    // SAFETY: the team is this thread's, and its list is used with the lock held.
    let (found, first) = unsafe {
        sync::lock(&raw const (*team).lock);
        let mut found = (*team).shares;
        while !found.is_null() && (*found).sequence != sequence {
            found = (*found).next_share;
        }
        let first = found.is_null();
        if first {
            found = sync::create(Share { sequence, next_share: (*team).shares, ..share() });
            (*team).shares = found;
        }
        sync::unlock(&raw const (*team).lock);
        (found, first)
    };
    context::set(Context { sequence, share: found, trip: 0, chunk: (0, 0), ..context });
    first
}

/// Leaves the construct; the last thread frees it.
pub(super) fn leave() {
    let context = context::get();
    if context.share.is_null() {
        return;
    }
    let (team, share) = (context.team, context.share);
    // SAFETY: as above; nobody uses the piece after the last thread.
    unsafe {
        sync::lock(&raw const (*team).lock);
        (*share).left += 1;
        if (*share).left == (*team).threads {
            let mut link = &raw mut (*team).shares;
            while *link != share {
                link = &raw mut (**link).next_share;
            }
            *link = (*share).next_share;
            sync::discard(share);
        }
        sync::unlock(&raw const (*team).lock);
    }
    context::set(Context { share: null_mut(), ..context });
}

/// The next chunk of this thread (first, end); `None` if there is none.
pub(super) fn next() -> Option<(u64, u64)> {
    let context = context::get();
    let share = context.share;
    // SAFETY: the thread is in this piece of work, whose description never changes.
    let (work, schedule, ordered) = unsafe { ((*share).work, (*share).schedule, (*share).ordered) };
    if ordered {
        pass_turn(&context);
    }
    let threads = u64::from(context.threads());
    let range = if matches!(schedule.kind, Kind::Static | Kind::Auto) {
        schedule::fixed(work.count, schedule.chunk, threads, u64::from(context.number), context.trip)
    } else {
        // SAFETY: as above; what was given out is used with the lock held.
        unsafe {
            sync::lock(&raw const (*context.team).lock);
            let start = (*share).next;
            let count = schedule::next(schedule.kind, work.count - start, schedule.chunk, threads);
            (*share).next = start + count;
            sync::unlock(&raw const (*context.team).lock);
            (count > 0).then_some(start..start + count)
        }
    };
    let chunk = range.clone().map_or((0, 0), |range| (range.start, range.end));
    context::set(Context { trip: context.trip + 1, chunk, ..context });
    range.map(|range| work.values(&range))
}

/// Passes the turn of ordered parts behind this thread's chunk, once it has come to it.
fn pass_turn(context: &Context) {
    let iterations = context.iterations();
    if iterations.is_empty() {
        return;
    }
    await_turn(context);
    // SAFETY: the thread is in this piece of work; its turn is used with the lock held.
    unsafe {
        sync::lock(&raw const (*context.team).lock);
        (*context.share).turn = iterations.end;
        team::wake(context.team);
        sync::unlock(&raw const (*context.team).lock);
    }
}

/// Waits until the turn of ordered parts has come to this thread's chunk.
pub(super) fn await_turn(context: &Context) {
    // SAFETY: as above.
    unsafe {
        sync::lock(&raw const (*context.team).lock);
        while (*context.share).turn != context.iterations().start {
            team::wait(context.team);
        }
        sync::unlock(&raw const (*context.team).lock);
    }
}
