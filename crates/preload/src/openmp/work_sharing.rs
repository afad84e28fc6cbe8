//! Work-sharing constructs: each thread of a team meets the same constructs in the same order, and may be ahead of
//! others.

use super::cancel;
use super::claimed::{self, Chunks};
use super::common;
use super::context::{self, Context};
use super::schedule::{self, Kind};
use super::share::Share;
use super::sync;
use gondwana_node::Part;
use std::ops::Range;

/// Enters the next construct.
pub(super) fn enter(share: Share) {
    context::team();
    context::update(|context| {
        context.sequence += 1;
        context.share = Some(share.numbered(context.sequence));
        context.dealt |= share.is_dealt() && share.work.count > 1;
        (context.trip, context.chunk, context.has_turn) = (0, (0, 0), false);
    });
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
    let in_order = Chunks {
        construct: sync::construct(context.team, share.number),
        settled: context.settled,
        total: count,
        chunk,
        shares: if kind == Kind::Guided { threads.into() } else { u64::MAX },
        threads: threads.into(),
        ahead: kind == Kind::Dynamic && !share.ordered,
        after: context.chunk.1,
        part: None,
    };
    let total = count.div_ceil(chunk);
    if !share.is_reordered() || total > Part::MOST {
        return claimed::next(&in_order);
    }
    // Whole chunks are divided in parts.
    let shares = if kind == Kind::Guided { 2 } else { u64::MAX };
    let part = Some(Part { number: context.number, of: threads });
    // Variables keep their values from the last iteration that a thread gets, so that nothing comes after the very last one.
    let after = if context.chunk.1 == count { total } else { 0 };
    let range = claimed::next(&Chunks { total, chunk: 1, shares, after, part, ..in_order })?;
    Some(range.start * chunk..range.end.saturating_mul(chunk).min(count))
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
