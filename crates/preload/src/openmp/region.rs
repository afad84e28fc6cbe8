//! Parallel regions: a team of threads runs the same function.

use super::assignment::Assignment;
use super::context::{self, Context};
use super::kmpc::fork::Call;
use super::membership::{self, Body};
use super::pool::{self, Started};
use super::settings;
use super::share::Share;
use super::team::{Controls, Team};
use libc::{c_uint, c_void};
use std::cell::RefCell;
use std::ptr::null_mut;

/// A region that the calling thread has begun and not ended.
pub(super) struct OpenRegion {
    team: *mut Team,
    /// Where the thread was before.
    before: Context,
    started: Started,
}

thread_local! {
    /// Regions that code of older compilers has begun.
    static KEPT: RefCell<Vec<OpenRegion>> = const { RefCell::new(vec![]) };
}

/// The number of threads of a region that requests `asked`; 0 requests the default.
pub(super) fn threads(asked: u32, context: &Context) -> u32 {
    let wanted = if asked == 0 { context.controls.threads } else { asked };
    let several = context.levels().1 < context.controls.levels && pool::is_possible();
    if several { wanted.clamp(1, context.controls.limit.max(1)) } else { 1 }
}

/// Starts a region: the other threads of the team run it, and the calling thread has entered it.
pub(super) fn begin(function: Body, data: *mut c_void, asked: u32, first: Option<Share>) -> OpenRegion {
    begin_with(function, data, asked, first, None)
}

fn begin_with(
    function: Body,
    data: *mut c_void,
    asked: u32,
    first: Option<Share>,
    call: Option<Call>,
) -> OpenRegion {
    let parent = context::team();
    let before = context::get();
    let threads = threads(asked, &before);
    let mut controls = before.controls;
    let lists = settings::get().threads.len();
    if lists > before.levels().0 as usize + 1 {
        controls.threads = Controls::at(before.levels().0 + 1).threads;
    }
    let mut assignment = Assignment {
        team: null_mut(),
        shape: before
            .shape
            .inside(threads, pool::has_tasks() && (threads > 1 || pool::one_thread_has_tasks())),
        sequence: pool::next_sequence(),
        ring: None,
        dispatched: 0,
        function: function as usize,
        data: data as usize,
        controls,
        league: before.league,
        first,
        call,
    };
    let started = pool::start(&mut assignment, parent, before.number);
    membership::come(&assignment, 0);
    OpenRegion { team: assignment.team, before, started }
}

impl OpenRegion {
    /// Waits for the other threads and restores the thread's previous state.
    pub(super) fn end(self) {
        membership::leave();
        let Context { ring, dispatched, .. } = context::get();
        context::set(self.before);
        self.started.end(self.team, ring.map(|ring| (ring, dispatched)));
    }

    /// To be ended by [`end_kept`].
    pub(super) fn keep(self) {
        KEPT.with_borrow_mut(|kept| kept.push(self));
    }
}

/// Ends the region that was kept last.
pub(super) fn end_kept() {
    if let Some(region) = KEPT.with_borrow_mut(Vec::pop) {
        region.end();
    }
}

/// Runs a region from its beginning to its end.
///
/// # Safety
/// `function` may be called with `data`.
pub(super) unsafe fn run(function: Body, data: *mut c_void, asked: c_uint, first: Option<Share>) {
    let region = begin(function, data, asked, first);
    // SAFETY: the caller's promise.
    unsafe { function(data) };
    region.end();
}

/// Runs a region of clang's, whose function is called with the call.
///
/// # Safety
/// `function` may be called with the call.
pub(super) unsafe fn run_call(function: Body, call: Call, asked: c_uint) {
    let region = begin_with(function, null_mut(), asked, None, Some(call));
    // SAFETY: the caller's promise.
    unsafe { function((&raw const call).cast_mut().cast()) };
    region.end();
}
