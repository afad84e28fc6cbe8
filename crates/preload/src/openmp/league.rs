//! Leagues of teams. libgomp has one team after the other run the construct in the thread that meets it; all threads
//! of regions inside learn which team it is.

use super::context::{self, Context};
use super::task::Function;
use libc::{c_int, c_uint, c_void};

/// A team of a league.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct League {
    /// The team's number.
    pub team: c_int,
    /// How many there are.
    pub teams: c_int,
}

impl League {
    /// Outside all leagues.
    pub(super) const ALONE: Self = Self { team: 0, teams: 1 };

    /// Where libgomp says that the calling thread is.
    fn present() -> Self {
        // SAFETY: functions without arguments.
        unsafe {
            Self {
                team: crate::real!(omp_get_team_num: fn() -> c_int)(),
                teams: crate::real!(omp_get_num_teams: fn() -> c_int)(),
            }
        }
    }
}

/// The calling thread begins the work of a team. libgomp knows how many threads that may have.
fn begin_team() {
    // SAFETY: a function without arguments.
    let limit = unsafe { crate::real!(omp_get_thread_limit: fn() -> c_int)() };
    context::update(|context| {
        context.league = League::present();
        if limit < c_int::MAX {
            context.controls.limit = limit.max(1).cast_unsigned();
        }
    });
}

/// `teams` inside `target`: true if there is one more team to run.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_teams4(least: c_uint, most: c_uint, limit: c_uint, first: bool) -> bool {
    // SAFETY: forwards what gcc passed.
    let more = unsafe {
        crate::real!(GOMP_teams4: fn(c_uint, c_uint, c_uint, bool) -> bool)(least, most, limit, first)
    };
    begin_team();
    more
}

/// `teams` outside `target`.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_teams_reg(
    function: Function,
    data: *mut c_void,
    teams: c_uint,
    limit: c_uint,
    flags: c_uint,
) {
    let Context { league, controls, .. } = context::get();
    let mut work = (function, data);
    // SAFETY: forwards what gcc passed, by way of `run_team`.
    unsafe {
        crate::real!(GOMP_teams_reg: fn(Function, *mut c_void, c_uint, c_uint, c_uint))(
            run_team,
            (&raw mut work).cast(),
            teams,
            limit,
            flags,
        );
    }
    context::update(|context| (context.league, context.controls) = (league, controls));
}

unsafe extern "C" fn run_team(work: *mut c_void) {
    begin_team();
    // SAFETY: `GOMP_teams_reg` passes a function and its argument.
    unsafe {
        let (function, data) = *work.cast::<(Function, *mut c_void)>();
        function(data);
    }
}
