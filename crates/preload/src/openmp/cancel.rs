//! `cancel` and `cancellation point`, where `OMP_CANCELLATION` is true.
//!
//! Each node knows of a team in which part of its life, from one barrier to the next, a region or a loop was cancelled. Who cancels
//! tells the other nodes. Between two barriers a team is in one loop at most that can be cancelled, because its end is a barrier.
//!
//! A region that is cancelled in some part of its team's life ends with that part's barrier and one more. Who cancels, and who notices, goes to
//! the end of the region; others may be at a barrier inside, and together they are all threads of the team, so that barrier passes.
//! Then each of them knows of the cancellation, because who cancels arrives only when all nodes have heard of it; those that
//! were inside go to the end, too, and there all meet again.

use super::claimed;
use super::common;
use super::context::{self, Context};
use super::crew::{self, Crew};
use super::membership;
use super::settings;
use super::sync;
use super::task;
use super::task_messages::CANCEL;
use super::times::{Ends, telling_return};
use gondwana_node::Node;
use libc::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a thread cancels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Region,
    /// A loop, or sections.
    Share,
    /// A group of tasks.
    Group,
}

/// What was cancelled of one team, as far as this node knows: the last epoch in which that happened, 0 for none.
#[derive(Default)]
pub(super) struct Cancelled {
    region: AtomicU64,
    share: AtomicU64,
}

impl What {
    /// As gcc names it.
    fn of(number: c_int) -> Self {
        match number {
            1 => Self::Region,
            8 => Self::Group,
            _ => Self::Share,
        }
    }
}

/// The node, and the calling thread's team as its node knows it, if it is in a region and something can be cancelled.
fn known() -> Option<(&'static Node, &'static Crew)> {
    if !settings::get().cancellation {
        return None;
    }
    let Context { team, begun, .. } = context::get();
    let node = Node::current().filter(|_| begun > 0)?;
    Some((node, crew::of(node, team)))
}

/// Cancels the calling thread's region, loop or group of tasks. True if the thread is to leave it.
pub(super) fn cancel(what: What) -> bool {
    if !settings::get().cancellation {
        return false;
    }
    let Some((node, crew)) = known() else { return true };
    let Context { epoch, shape, scope, .. } = context::get();
    match what {
        What::Region if is_region_cancelled(crew) => {}
        What::Region => {
            let is_first = crew.cancelled.region.fetch_max(epoch, Ordering::AcqRel) < epoch;
            for other in node.others().filter(|_| is_first && shape.threads > 1) {
                node.tell_and_wait(other, vec![CANCEL, crew.team, 0, epoch]);
            }
        }
        // Alone, the thread only leaves.
        What::Share if shape.threads == 1 => {}
        What::Share => {
            let is_first = crew.cancelled.share.fetch_max(epoch, Ordering::AcqRel) < epoch;
            for other in node.others().filter(|_| is_first) {
                node.tell(other, vec![CANCEL, crew.team, 1, epoch]);
            }
        }
        What::Group => {
            if let Some((node, crew)) = task::crew() {
                crew.with(node, move |machine| machine.cancel_group(scope));
            }
        }
    }
    true
}

/// Another node tells of something that was cancelled.
pub(super) fn heard(node: &'static Node, team: u64, what: u64, epoch: u64) {
    let Cancelled { region, share } = &crew::named(node, team).cancelled;
    let place = if what == 0 { region } else { share };
    place.fetch_max(epoch, Ordering::AcqRel);
}

/// True if the calling thread's region is cancelled. Earlier ones with the same team had smaller epochs.
fn is_region_cancelled(crew: &Crew) -> bool {
    crew.cancelled.region.load(Ordering::Acquire) >= context::get().begun
}

/// True if the calling thread is to leave what may be cancelled. It sees what the thread had written that has cancelled it.
pub(super) fn is_cancelled(what: What) -> bool {
    let Some((node, crew)) = known() else { return false };
    let Context { epoch, shape, scope, .. } = context::get();
    let is_cancelled = match what {
        What::Region => is_region_cancelled(crew),
        What::Share => shape.threads > 1 && crew.cancelled.share.load(Ordering::Acquire) == epoch,
        What::Group => is_region_cancelled(crew) || task::crew().is_some_and(|_| crew.is_cancelled(scope)),
    };
    if is_cancelled {
        node.acquire(None);
    }
    is_cancelled
}

/// True if the calling thread's region was cancelled in the epoch whose barrier it has passed: others may be inside still.
pub(super) fn was_region_cancelled() -> bool {
    known().is_some_and(|(_, crew)| {
        let context = context::get();
        context.threads() > 1 && crew.cancelled.region.load(Ordering::Acquire) == context.epoch - 1
    })
}

/// Waits at a barrier inside a region that may be cancelled. True if it is.
pub(super) fn barrier(ends: Ends) -> bool {
    membership::barrier(ends);
    is_cancelled(What::Region)
}

/// The calling thread leaves a work-sharing construct: nobody may want what its node has claimed of it.
pub(super) fn leave_share() {
    let Context { team, share, .. } = context::get();
    if let Some(share) = share.filter(|_| is_cancelled(What::Share) || is_cancelled(What::Region)) {
        claimed::abandon(sync::construct(team, share.number));
    }
}

/// After the end of a cancelled region: threads have left work-sharing constructs without saying so.
pub(super) fn clear() {
    leave_share();
    if context::get().number == 0 {
        common::clear();
        clear_buffers();
    }
}

/// Threads may have met different numbers of constructs: the dispatch buffers begin anew.
fn clear_buffers() {
    if let (Some(node), Some(ring)) = (Node::current(), context::get().ring) {
        node.clear_dispatch_ring(ring);
        context::update(|context| context.dispatched = 0);
    }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_cancel(what: c_int, wanted: bool) -> bool {
    if wanted { cancel(What::of(what)) } else { is_cancelled(What::of(what)) }
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_cancellation_point(what: c_int) -> bool {
    is_cancelled(What::of(what))
}

telling_return! {
    "rdi": GOMP_barrier_cancel by barrier_at;
}

extern "C" fn barrier_at(returns_to: usize) -> bool {
    barrier(Ends::Call(returns_to))
}
