//! The query and control functions of OpenMP.

use super::context::{self, Context};
use super::schedule::Schedule;
use super::settings::{self, MOST_LEVELS};
use super::team::Team;
use crate::numbers::int;
use libc::{c_double, c_int};

/// Defines functions under their names in C and, with pointers to their arguments, in Fortran.
macro_rules! exported {
    ($(fn $name:ident, $fortran:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            $body
        }

        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $fortran($($argument: *const $type),*) $(-> $result)? {
            // SAFETY: Fortran passes the addresses of its arguments.
            $(let $argument = unsafe { *$argument };)*
            $body
        }
    )*};
}

pub(super) use exported;

exported! {
    fn omp_get_thread_num, omp_get_thread_num_() -> c_int = int(context::get().number);
    fn omp_get_num_threads, omp_get_num_threads_() -> c_int = int(context::get().threads());
    fn omp_get_max_threads, omp_get_max_threads_() -> c_int = int(context::get().controls.threads);
    fn omp_get_num_procs, omp_get_num_procs_() -> c_int = int(settings::processors());
    fn omp_in_parallel, omp_in_parallel_() -> c_int = c_int::from(context::get().levels().1 > 0);
    fn omp_in_final, omp_in_final_() -> c_int = c_int::from(context::get().last);
    fn omp_set_num_threads, omp_set_num_threads_(threads: c_int) = context::update(|context| {
        context.controls.threads = threads.max(1).cast_unsigned();
    });
    fn omp_set_dynamic, omp_set_dynamic_(dynamic: c_int) = context::update(|context| {
        context.controls.dynamic = dynamic != 0;
    });
    fn omp_get_dynamic, omp_get_dynamic_() -> c_int = c_int::from(context::get().controls.dynamic);
    fn omp_set_nested, omp_set_nested_(nested: c_int) = context::update(|context| {
        context.controls.levels = if nested != 0 { MOST_LEVELS } else { 1 };
    });
    fn omp_get_nested, omp_get_nested_() -> c_int = {
        let context = context::get();
        c_int::from(context.controls.levels > 1 && context.controls.levels > context.levels().1)
    };
    fn omp_set_max_active_levels, omp_set_max_active_levels_(levels: c_int) = if levels >= 0 {
        context::update(|context| context.controls.levels = levels.cast_unsigned().min(MOST_LEVELS));
    };
    fn omp_get_max_active_levels, omp_get_max_active_levels_() -> c_int = int(context::get().controls.levels);
    fn omp_get_supported_active_levels, omp_get_supported_active_levels_() -> c_int = int(MOST_LEVELS);
    fn omp_get_thread_limit, omp_get_thread_limit_() -> c_int = int(context::get().controls.limit);
    fn omp_get_level, omp_get_level_() -> c_int = int(context::get().levels().0);
    fn omp_get_active_level, omp_get_active_level_() -> c_int = int(context::get().levels().1);
    fn omp_get_ancestor_thread_num, omp_get_ancestor_thread_num_(level: c_int) -> c_int =
        ancestor(level);
    fn omp_get_team_size, omp_get_team_size_(level: c_int) -> c_int =
        at_level(level).map_or(-1, |(threads, _)| int(threads));
    fn omp_get_team_num, omp_get_team_num_() -> c_int = context::get().league.team;
    fn omp_get_num_teams, omp_get_num_teams_() -> c_int = context::get().league.teams;
    fn omp_get_cancellation, omp_get_cancellation_() -> c_int = c_int::from(settings::get().cancellation);
    fn omp_get_max_task_priority, omp_get_max_task_priority_() -> c_int = int(settings::get().priority);
    fn omp_get_wtime, omp_get_wtime_() -> c_double = seconds(libc::clock_gettime);
    fn omp_get_wtick, omp_get_wtick_() -> c_double = seconds(libc::clock_getres);
    fn omp_set_schedule, omp_set_schedule_(kind: c_int, chunk: c_int) =
        if let Some(schedule) = Schedule::of(kind.cast_unsigned(), u64::try_from(chunk).unwrap_or(0)) {
            context::update(|context| context.controls.schedule = schedule);
        };
}

/// Defines the names that clang's library has besides for functions of one number.
macro_rules! as_clang_names_them {
    ($($name:ident: $function:ident $(-> $result:ty)?;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name(argument: c_int) $(-> $result)? {
            // SAFETY: forwards the caller's number.
            unsafe { $function(argument) }
        }
    )*};
}

as_clang_names_them! {
    ompc_set_num_threads: omp_set_num_threads;
    ompc_set_dynamic: omp_set_dynamic;
    ompc_set_nested: omp_set_nested;
    ompc_set_max_active_levels: omp_set_max_active_levels;
    ompc_get_ancestor_thread_num: omp_get_ancestor_thread_num -> c_int;
    ompc_get_team_size: omp_get_team_size -> c_int;
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ompc_set_schedule(kind: c_int, chunk: c_int) {
    // SAFETY: forwards the caller's numbers.
    unsafe { omp_set_schedule(kind, chunk) };
}

/// The number of the calling thread's ancestor at a level; -1 if there is none.
pub(super) fn ancestor(level: c_int) -> c_int {
    at_level(level).map_or(-1, |(_, number)| int(number))
}

/// The number of threads of the calling thread's ancestor team at a level, and the ancestor's number in it.
fn at_level(level: c_int) -> Option<(u32, u32)> {
    let context = context::get();
    let (mut team, mut number) = (context.team, context.number);
    let mut up = context.levels().0.checked_sub(u32::try_from(level).ok()?)?;
    // SAFETY: teams live as long as the regions inside them; what is read never changes.
    unsafe {
        while up > 0 {
            let Team { parent, number_in_parent, .. } = *team;
            (team, number, up) = (parent, number_in_parent, up - 1);
        }
        Some((team.as_ref().map_or(1, |team| team.shape.threads), number))
    }
}

fn seconds(clock: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int) -> c_double {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result goes to a private variable.
    unsafe { clock(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as c_double + time.tv_nsec as c_double / 1e9
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_schedule(kind: *mut c_int, chunk: *mut c_int) {
    let Context { controls, .. } = context::get();
    // SAFETY: the caller passes places for the results.
    unsafe {
        *kind = controls.schedule.number().cast_signed();
        *chunk = int(controls.schedule.chunk);
    }
}

/// # Safety
/// As OpenMP says.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn omp_get_schedule_(kind: *mut c_int, chunk: *mut c_int) {
    // SAFETY: forwards the caller's places.
    unsafe { omp_get_schedule(kind, chunk) };
}
