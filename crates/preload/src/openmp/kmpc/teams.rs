//! `teams`: a league whose teams run one after the other in the thread that meets it, as those of gcc's programs do.

use super::Place;
use crate::openmp::context;
use crate::openmp::league::League;
use crate::private_stack::uninterrupted;
use gondwana_interpose::NextFunction;
use libc::c_int;
use std::cell::Cell;

thread_local! {
    /// How many teams the next league is to have, and how many threads each of them at most; 0 for no wish.
    static WANTED: Cell<(c_int, c_int)> = const { Cell::new((0, 0)) };
}

/// How many teams there are to be where the construct does not say it, and how many threads each may have. The compiler's library, if it is
/// not too old, knows what the program has set.
static MOST_TEAMS: NextFunction = NextFunction::new(c"omp_get_max_teams");
static MOST_THREADS: NextFunction = NextFunction::new(c"omp_get_teams_thread_limit");

/// What such a function tells; 0 if there is none.
fn setting(function: &NextFunction) -> c_int {
    let address = function.known().or_else(|| uninterrupted(|| function.find()));
    // SAFETY: functions without arguments, which give a number.
    address.map_or(0, |address| unsafe {
        std::mem::transmute::<usize, unsafe extern "C" fn() -> c_int>(address)()
    })
}

/// Has the calling thread do the work of each team.
pub(super) fn each(mut work: impl FnMut()) {
    let before = context::get();
    let (teams, limit) = WANTED.take();
    let teams = if teams > 0 { teams } else { setting(&MOST_TEAMS).max(1) };
    let limit = if limit > 0 { limit } else { setting(&MOST_THREADS) };
    for team in 0..teams {
        context::update(|context| {
            context.league = League { team, teams };
            if let Some(limit) = u32::try_from(limit).ok().filter(|limit| *limit > 0) {
                context.controls.threads = before.controls.threads.min(limit);
                context.controls.limit = before.controls.limit.min(limit);
            }
        });
        work();
    }
    context::update(|context| (context.league, context.controls) = (before.league, before.controls));
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_push_num_teams(
    _place: Place,
    _thread: c_int,
    teams: c_int,
    limit: c_int,
) {
    WANTED.set((teams, limit));
}

/// As [`__kmpc_push_num_teams`], with a range of how many teams there may be.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_push_num_teams_51(
    _place: Place,
    _thread: c_int,
    least: c_int,
    most: c_int,
    limit: c_int,
) {
    WANTED.set((if most > 0 { most } else { least }, limit));
}
