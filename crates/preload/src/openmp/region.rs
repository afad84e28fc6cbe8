//! Parallel regions: a team of threads runs the same function.

use super::context::{self, Context};
use super::pool::{self, Started};
use super::settings;
use super::share::Share;
use super::task;
use super::team::{Controls, Team};
use libc::{c_uint, c_void};
use std::cell::RefCell;

/// What the threads of a team run.
pub type Body = unsafe extern "C" fn(*mut c_void);

/// A region that the calling thread has begun and not ended.
pub struct Region {
    team: *mut Team,
    /// Where the thread was before.
    before: Context,
    started: Started,
}

thread_local! {
    /// Regions that code of older compilers has begun.
    static KEPT: RefCell<Vec<Region>> = const { RefCell::new(vec![]) };
}

/// How many threads a region gets that asks for `asked`, or does not care if that is 0.
fn threads(asked: u32, context: &Context) -> u32 {
    let wanted = if asked == 0 { context.controls.threads } else { asked };
    let several = context.levels().1 < context.controls.levels && pool::is_possible();
    if several { wanted.clamp(1, settings::get().limit) } else { 1 }
}

/// Begins a region: the others of the team are at it, and the calling thread is in it.
pub fn begin(function: Body, data: *mut c_void, asked: u32, first: Option<Share>) -> Region {
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
    if let Some(first) = first {
        team.first = first.first();
        team.shares = team.first;
    }
    let (team, started) = pool::start(team);
    come(team, 0);
    Region { team, before, started }
}

impl Region {
    /// Waits for the others and goes back to where the thread was.
    pub fn end(self) {
        go();
        context::set(self.before);
        self.started.end(self.team);
    }

    /// To be ended by [`end_kept`].
    pub fn keep(self) {
        KEPT.with_borrow_mut(|kept| kept.push(self));
    }
}

/// Ends the region that was kept last.
pub fn end_kept() {
    if let Some(region) = KEPT.with_borrow_mut(Vec::pop) {
        region.end();
    }
}

/// Runs a region from its beginning to its end.
///
/// # Safety
/// `function` may be called with `data`.
pub unsafe fn run(function: Body, data: *mut c_void, asked: c_uint, first: Option<Share>) {
    let region = begin(function, data, asked, first);
    // SAFETY: the caller's promise.
    unsafe { function(data) };
    region.end();
}

/// Comes into a region as one of its threads.
fn come(team: *mut Team, number: u32) {
    // SAFETY: what is read was written before the thread was told of the team.
    let (controls, first) = unsafe { ((*team).controls, (*team).first) };
    let sequence = u64::from(!first.is_null());
    context::set(Context { share: first, sequence, ..Context::new(team, number, controls) });
}

/// Waits for the others at the end of a region.
fn go() {
    barrier();
    task::end();
}

/// Does another thread's part in a region.
pub fn take_part(team: *mut Team, number: u32) {
    let before = context::get();
    come(team, number);
    // SAFETY: the thread that has begun the region passes a function and its argument.
    unsafe {
        let function: Body = std::mem::transmute((*team).function);
        function((*team).data as *mut c_void);
    }
    go();
    context::set(before);
}

/// Waits for all threads of the team, and for all its tasks.
pub fn barrier() {
    let Context { team, .. } = context::get();
    // SAFETY: the team is the calling thread's; what is read never changes.
    unsafe {
        match team.as_ref() {
            None => {}
            Some(Team { threads: 1, .. }) => {}
            Some(_) => task::barrier(team),
        }
    }
}
