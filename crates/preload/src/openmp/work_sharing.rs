//! Work-sharing constructs: each thread of a team meets the same constructs in the same order, and may be ahead of
//! others.

use super::cancel;
use super::claimed::{self, Chunks};
use super::common;
use super::context::{self, Context};
use super::schedule::{self, Kind};
use super::share::Share;
use super::sync;
use gondwana_node::{Claim, Part};
use std::ops::Range;

/// Enters the next construct.
pub(super) fn enter(share: Share) {
    context::team();
    context::update(|context| context.enter(share));
}

/// Leaves the construct.
pub(super) fn leave() {
    cancel::leave_share();
    common::leave();
    context::update(|context| context.share = None);
}

/// The next chunk of this thread (first, end); `None` if there is none.
pub(super) fn next() -> Option<(u64, u64)> {
    let context = context::get();
    let share = context.share?;
    if share.ordered {
        pass_turn(&context, &share);
    }
    let range = claim(&context, &share);
    let chunk = range.clone().map_or((0, 0), |range| (range.start, range.end));
    context::set(Context { trip: context.trip + 1, chunk, has_turn: false, ..context });
    range.map(|range| share.work.values(&range))
}

fn claim(context: &Context, share: &Share) -> Option<Range<u64>> {
    let Share { work, schedule, .. } = *share;
    let threads = u64::from(context.threads());
    match schedule.kind {
        Kind::Static | Kind::Auto => {
            schedule::fixed(work.count, schedule.chunk, threads, u64::from(context.number), context.trip)
        }
        // Alone, a thread gets everything in the order of the iterations.
        _ if threads == 1 => {
            let start = context.chunk.1;
            let count = schedule::next(schedule.kind, work.count - start, schedule.chunk, threads);
            (count > 0).then_some(start..start + count)
        }
        kind => claim_dealt(context, share, kind),
    }
}

/// The next iterations of a loop that is dealt out to several threads.
fn claim_dealt(context: &Context, share: &Share, kind: Kind) -> Option<Range<u64>> {
    let (count, chunk, threads) = (share.work.count, share.schedule.chunk.max(1), context.threads());
    let shares = |guided: u32| if kind == Kind::Guided { guided.into() } else { u64::MAX };
    let claim = match share.parted() {
        None => Claim { total: count, least: chunk, shares: shares(threads), part: None },
        Some(total) => {
            let part = Some(Part { number: context.number, of: threads });
            Claim { total, least: 1, shares: shares(2), part }
        }
    };
    let range = match (context.ring, share.buffer) {
        (Some(ring), Some(construct)) => sync::claim_dispatched(ring, construct, &claim),
        _ => claimed::next(&Chunks {
            construct: sync::construct(context.team, share.number),
            settled: context.settled,
            total: claim.total,
            chunk: claim.least,
            shares: claim.shares,
            threads: threads.into(),
            ahead: kind == Kind::Dynamic && !share.ordered,
            after: match claim.part {
                None => context.chunk.1,
                // Variables keep their values from the last iteration that a thread gets, so that nothing comes after the very last one.
                Some(_) if context.chunk.1 == count => claim.total,
                Some(_) => 0,
            },
            part: claim.part,
        }),
    }?;
    // Whole chunks are divided in parts.
    Some(if claim.part.is_some() {
        range.start * chunk..range.end.saturating_mul(chunk).min(count)
    } else {
        range
    })
}

/// Passes the turn of ordered parts behind this thread's chunk.
fn pass_turn(context: &Context, share: &Share) {
    let Range { start, end } = context.iterations();
    if start < end && context.threads() > 1 {
        sync::pass_turn(sync::construct(context.team, share.number), context.settled, (start, end));
    }
}

/// Waits until the turn of ordered parts has come to this thread's chunk.
pub(super) fn await_turn() {
    let context = context::get();
    let Some(share) = context.share else { return };
    if !context.has_turn && context.threads() > 1 && !context.iterations().is_empty() {
        sync::await_turn(sync::construct(context.team, share.number), context.iterations().start);
        context::update(|context| context.has_turn = true);
    }
}
