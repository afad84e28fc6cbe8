//! The functions of `omp.h` that ask and set.

use super::settings::Kind;
use super::{Team, state};
use crate::world::started;
use libc::{c_double, c_int};

/// The team `level` regions from the outermost one, and the thread's number in it.
fn at_level(level: c_int) -> Option<(&'static Team, usize)> {
    let all = state();
    let context = all.context().clone();
    let mut at = (context.team, context.number);
    loop {
        let team = all.teams.get(&at.0)?;
        if c_int::try_from(team.levels.0) == Ok(level) {
            return Some((team, at.1));
        }
        at = team.made_by?;
    }
}

/// Defines functions of C.
macro_rules! exported {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) $(-> $result)? { $body }
    )*};
}

fn int(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

exported! {
    fn omp_get_thread_num() -> c_int = int(state().context().number);
    fn omp_get_num_threads() -> c_int = int(state().team().members.len());
    fn omp_get_max_threads() -> c_int = int(state().context().controls.threads);
    fn omp_get_num_procs() -> c_int = int(started().machine.processors());
    fn omp_get_thread_limit() -> c_int = c_int::MAX;
    fn omp_in_parallel() -> c_int = c_int::from(state().team().levels.1 > 0);
    fn omp_in_final() -> c_int = c_int::from(state().in_final());
    fn omp_set_num_threads(threads: c_int) = state().context().controls.threads = threads.max(1) as usize;
    fn omp_get_dynamic() -> c_int = c_int::from(state().context().controls.dynamic);
    fn omp_set_dynamic(dynamic: c_int) = state().context().controls.dynamic = dynamic != 0;
    fn omp_get_nested() -> c_int = c_int::from(state().context().controls.levels > 1);
    fn omp_set_nested(nested: c_int) = state().context().controls.levels = if nested != 0 { usize::MAX } else { 1 };
    fn omp_get_max_active_levels() -> c_int = int(state().context().controls.levels);
    fn omp_set_max_active_levels(levels: c_int) = state().context().controls.levels = levels.max(0) as usize;
    fn omp_get_supported_active_levels() -> c_int = c_int::MAX;
    fn omp_get_level() -> c_int = int(state().team().levels.0);
    fn omp_get_active_level() -> c_int = int(state().team().levels.1);
    fn omp_get_ancestor_thread_num(level: c_int) -> c_int = at_level(level).map_or(-1, |(_, number)| int(number));
    fn omp_get_team_size(level: c_int) -> c_int = at_level(level).map_or(-1, |(team, _)| int(team.members.len()));
    fn omp_get_cancellation() -> c_int = 0;
    fn omp_get_proc_bind() -> c_int = 0;
    fn omp_get_num_places() -> c_int = 0;
    fn omp_get_place_num() -> c_int = -1;
    fn omp_get_max_task_priority() -> c_int = 0;
    fn omp_get_default_device() -> c_int = 0;
    fn omp_set_default_device(_device: c_int) = ();
    fn omp_get_num_devices() -> c_int = 0;
    fn omp_get_device_num() -> c_int = 0;
    fn omp_get_initial_device() -> c_int = 0;
    fn omp_is_initial_device() -> c_int = 1;
    fn omp_get_num_teams() -> c_int = 1;
    fn omp_get_team_num() -> c_int = 0;
    fn omp_get_wtime() -> c_double = started().now() as c_double / 1e12;
    fn omp_get_wtick() -> c_double = 1e-9;
}

/// Numbers of schedules in `omp.h`.
const NUMBERS: [(c_int, Kind); 4] =
    [(1, Kind::Static), (2, Kind::Dynamic), (3, Kind::Guided), (4, Kind::Static)];

#[unsafe(no_mangle)]
extern "C" fn omp_set_schedule(kind: c_int, chunk: c_int) {
    // The highest bit says that chunks are dealt out in order, which they are.
    let found = NUMBERS.iter().find(|(number, _)| *number == kind & c_int::MAX);
    if let Some((_, kind)) = found {
        state().context().controls.schedule = (*kind, chunk.max(0) as u64);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn omp_get_schedule(kind: *mut c_int, chunk: *mut c_int) {
    let (wanted, iterations) = state().context().controls.schedule;
    let number = NUMBERS.iter().find(|(_, kind)| *kind == wanted).map_or(1, |(number, _)| *number);
    // SAFETY: the program's variables.
    unsafe {
        kind.write(number);
        chunk.write(c_int::try_from(iterations).unwrap_or(c_int::MAX));
    }
}
