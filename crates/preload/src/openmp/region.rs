//! Parallel regions: a team of threads runs the same function.

use super::context::{self, Context};
use super::membership::{self, Body};
use super::pool::{self, Started};
use super::settings;
use super::share::Share;
use super::team::{Controls, Team};
use libc::{c_uint, c_void};
use std::cell::RefCell;

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
fn threads(asked: u32, context: &Context) -> u32 {
    let wanted = if asked == 0 { context.controls.threads } else { asked };
    let several = context.levels().1 < context.controls.levels && pool::is_possible();
    if several { wanted.clamp(1, settings::get().limit) } else { 1 }
}

/// Starts a region: the other threads of the team run it, and the calling thread has entered it.
pub(super) fn begin(function: Body, data: *mut c_void, asked: u32, first: Option<Share>) -> OpenRegion {
    let mut before = context::get();
    before.team = context::team();
    let threads = threads(asked, &before);
    let mut controls = before.controls;
    let lists = settings::get().threads.len();
    if lists > before.levels().0 as usize + 1 {
        controls.threads = Controls::at(before.levels().0 + 1).threads;
    }
    let mut team = Team::new(threads, before.team, before.number, controls, pool::has_tasks());
    (team.function, team.data) = (function as usize, data as usize);
    team.league = before.league;
    if let Some(first) = first {
        team.first = first.first();
        team.shares = team.first;
    }
    let (team, started) = pool::start(team);
    membership::come(team, 0);
    OpenRegion { team, before, started }
}

impl OpenRegion {
    /// Waits for the other threads and restores the thread's previous state.
    pub(super) fn end(self) {
        membership::leave();
        context::set(self.before);
        self.started.end(self.team);
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
