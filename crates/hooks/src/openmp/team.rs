//! Parallel regions: their threads, which wait between regions, and barriers.

use super::shares::Work;
use super::tasks::run_task;
use super::{Context, LINE, Line, state};
use crate::threads::{find, pthread_create, touch};
use crate::world::{started, wait};
use gondwana_sim::{Kind, ThreadId};
use libc::{c_uint, c_void};
use std::ptr;

/// The body of a region.
pub(super) type Body = unsafe extern "C" fn(*mut c_void);

/// What a thread is to do.
pub(super) struct Assignment {
    body: Body,
    data: *mut c_void,
    context: Context,
}

/// A thread that runs what it is given, again and again.
unsafe extern "C" fn worker(_: *mut c_void) -> *mut c_void {
    loop {
        let Some(given) = state().assignments.remove(&started().current) else {
            wait(None);
            continue;
        };
        let task = given.context.task;
        state().push(given.context);
        touch(state().team().line(Line::Barrier), Kind::Read);
        // SAFETY: what the program passed for a region.
        unsafe { (given.body)(given.data) };
        barrier(true);
        state().pop();
        state().tasks.remove(&task);
    }
}

/// A thread that has nothing to do: the one that has been there for the longest, so that numbers keep their threads.
fn free_thread() -> ThreadId {
    if let Some(thread) = state().free.pop_first() {
        return thread;
    }
    let mut handle = 0;
    // SAFETY: the function is this library's.
    if unsafe { pthread_create(&raw mut handle, ptr::null(), worker, ptr::null_mut()) } != 0 {
        crate::start::die("the simulated machine has no stack left for a thread of OpenMP");
    }
    find(handle).unwrap_or_else(|| super::missing())
}

/// Runs a region. `work` is the construct that it begins with.
pub(super) unsafe fn region(body: Body, data: *mut c_void, wanted: c_uint, work: Option<Work>) {
    let all = state();
    let around = all.context().clone();
    let levels = all.team().levels;
    let wanted = if wanted == 0 { around.controls.threads } else { wanted as usize };
    let threads = if levels.1 >= around.controls.levels { 1 } else { wanted };
    let mut members = vec![started().current];
    while members.len() < threads {
        members.push(free_thread());
    }
    let all = state();
    let levels = (levels.0 + 1, levels.1 + usize::from(threads > 1));
    let team = all.open(members.clone(), Some((around.team, around.number)), levels);
    let met = u64::from(work.is_some());
    if let (Some(mut work), Some(team)) = (work, all.teams.get_mut(&team)) {
        work.left = threads;
        team.works.insert(0, work);
    }
    let task = all.implicit_task(team);
    let own = Context { team, number: 0, met, work: 0, rounds: 0, chunk: (0, 0), task, ..around };
    touch(all.teams.get(&team).map_or(ptr::null(), |team| team.line(Line::Barrier)), Kind::Write);
    for (number, thread) in members.into_iter().enumerate().skip(1) {
        let task = state().implicit_task(team);
        let context = Context { number, task, ..own.clone() };
        state().assignments.insert(thread, Assignment { body, data, context });
        if started().is_waiting(thread) {
            started().wake(thread);
        }
    }
    state().push(own);
    // SAFETY: what the program passed for the region.
    unsafe { body(data) };
    barrier(true);
    let all = state();
    all.pop();
    all.tasks.remove(&task);
    if let Some(team) = all.teams.remove(&team) {
        // SAFETY: the block is the team's.
        unsafe { libc::free(team.block as *mut c_void) };
    }
}

/// Waits for the team, and has its tasks run. At the `end` of a region, its threads have nothing to do when all have come.
pub(super) fn barrier(end: bool) {
    let (thread, number) = (started().current, state().context().team);
    let line = state().team().line(Line::Barrier);
    touch(line, Kind::Write);
    let team = state().team();
    team.arrived += 1;
    let episode = team.episode;
    loop {
        let team = state().team();
        if let Some(task) = team.queue.pop_front() {
            run_task(task);
            continue;
        }
        if team.arrived == team.members.len() && team.unfinished == 0 {
            team.arrived = 0;
            team.episode += 1;
            let sleepers = std::mem::take(&mut team.sleepers);
            let workers = team.members[1..].to_vec();
            if end {
                state().free.extend(workers);
            }
            for sleeper in sleepers {
                started().wake(sleeper);
            }
            return;
        }
        team.sleepers.push(thread);
        wait(None);
        // The thread that made the team may have gone on already.
        if state().teams.get(&number).is_none_or(|team| team.episode != episode) {
            break;
        }
    }
    touch(line, Kind::Read);
}

const _: () = assert!(LINE.is_power_of_two());

#[unsafe(no_mangle)]
unsafe extern "C" fn GOMP_parallel(body: Body, data: *mut c_void, threads: c_uint, _flags: c_uint) {
    // SAFETY: forwards what gcc passed.
    unsafe { region(body, data, threads, None) };
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_barrier() {
    barrier(false);
}
