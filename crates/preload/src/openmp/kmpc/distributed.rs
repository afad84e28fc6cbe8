//! Loops that Intel's compilers divide over the teams of a league and the threads of each team at once.

use super::Place;
use super::dispatch;
use super::loops::{
    CHUNKED, FromBits, MODIFIERS, Part, chunk_of, part, signed, teams, tell_part, threads, unsigned,
};
use crate::openmp::schedule::{Loop, fixed};
use libc::c_int;

/// The part of a loop of one of some teams, in one piece, and whether the last iteration is in it.
fn of_team(work: &Loop, (teams, team): (u64, u64)) -> (Loop, bool) {
    let range = fixed(work.count, 0, teams, team, 0).unwrap_or(work.count..work.count);
    let value = |iteration: u64| work.start.wrapping_add(work.step.wrapping_mul(iteration));
    let count = range.end - range.start;
    let of_team = Loop { start: value(range.start), end: value(range.end), step: work.step, count };
    (of_team, count > 0 && range.end == work.count)
}

/// The part of a thread of what a team has of a loop, and the last value of the team.
fn of_thread(work: &Loop, chunk: u64, teams: (u64, u64), threads: (u64, u64)) -> (Part, u64) {
    let (of_team, has_last) = of_team(work, teams);
    let of_thread = part(&of_team, chunk, threads.0, threads.1);
    let is_last = has_last && of_thread.is_last;
    (Part { is_last, ..of_thread }, of_team.end.wrapping_sub(of_team.step))
}

/// The first chunk of a team, which ends with the loop at the latest.
fn first_chunk(work: &Loop, chunk: u64, (teams, team): (u64, u64)) -> Part {
    let of_team = part(work, chunk, teams, team);
    match fixed(work.count, chunk, teams, team, 0) {
        Some(range) => {
            let last = work.start.wrapping_add(work.step.wrapping_mul(range.end - 1));
            Part { last, ..of_team }
        }
        None => of_team,
    }
}

/// Defines the functions of loops over variables of a type.
macro_rules! loops {
    ($($type:ident $step:ident $of:ident $both:ident $team:ident $dealt:ident;)*) => {$(
        /// A static loop over teams and threads.
        ///
        /// # Safety
        /// Called by code that Intel's compilers have made.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $both(
            _place: Place, _thread: c_int, schedule: c_int, is_last: *mut c_int, first: *mut $type,
            last: *mut $type, last_of_team: *mut $type, stride: *mut $step, step: $step, chunk: $step,
        ) {
            let chunk = match schedule & !MODIFIERS {
                CHUNKED => chunk_of(chunk),
                _ => 0,
            };
            // SAFETY: the caller passes the loop's ends and places for the results.
            unsafe {
                let work = $of((*first).into(), (*last).into(), step.into());
                let (part, end) = of_thread(&work, chunk, teams(), threads());
                tell_part!(part, $type first last, $step stride, is_last);
                *last_of_team = $type::from_bits(end);
            }
        }

        /// A loop over teams in chunks.
        ///
        /// # Safety
        /// Called by code that Intel's compilers have made.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $team(
            _place: Place, _thread: c_int, is_last: *mut c_int, first: *mut $type, last: *mut $type,
            stride: *mut $step, step: $step, chunk: $step,
        ) {
            // SAFETY: the caller passes the loop's ends and places for the results.
            unsafe {
                let work = $of((*first).into(), (*last).into(), step.into());
                let part = first_chunk(&work, chunk_of(chunk), teams());
                tell_part!(part, $type first last, $step stride, is_last);
            }
        }

        /// A loop over teams, whose parts are dealt out to the threads of each while it runs.
        ///
        /// # Safety
        /// Called by code that Intel's compilers have made.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $dealt(
            _place: Place, _thread: c_int, schedule: c_int, is_last: *mut c_int, first: $type, last: $type,
            step: $step, chunk: $step,
        ) {
            let (work, has_last) = of_team(&$of(first.into(), last.into(), step.into()), teams());
            // SAFETY: the caller passes a place for the result, or none.
            unsafe {
                if !is_last.is_null() {
                    *is_last = c_int::from(has_last);
                }
            }
            dispatch::begin(schedule, work, chunk.into());
        }
    )*};
}

loops! {
    i32 i32 signed __kmpc_dist_for_static_init_4 __kmpc_team_static_init_4 __kmpc_dist_dispatch_init_4;
    u32 i32 unsigned __kmpc_dist_for_static_init_4u __kmpc_team_static_init_4u __kmpc_dist_dispatch_init_4u;
    i64 i64 signed __kmpc_dist_for_static_init_8 __kmpc_team_static_init_8 __kmpc_dist_dispatch_init_8;
    u64 i64 unsigned __kmpc_dist_for_static_init_8u __kmpc_team_static_init_8u __kmpc_dist_dispatch_init_8u;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of all threads of all teams, and how many threads have the last one.
    fn values(work: &Loop, chunk: u64, teams: u64, threads: u64) -> (Vec<u64>, usize) {
        let (mut values, mut lasts) = (vec![], 0);
        for team in 0..teams {
            for thread in 0..threads {
                let (part, end) = of_thread(work, chunk, (teams, team), (threads, thread));
                lasts += usize::from(part.is_last);
                let inside = |value: u64, last: u64| value.cast_signed() <= last.cast_signed();
                let (mut first, mut last) = (part.first, part.last);
                while inside(first, end) {
                    let mut value = first;
                    while inside(value, last) && inside(value, end) {
                        values.push(value);
                        value = value.wrapping_add(work.step);
                    }
                    if chunk == 0 {
                        break;
                    }
                    (first, last) = (first.wrapping_add(part.stride), last.wrapping_add(part.stride));
                }
            }
        }
        values.sort_unstable();
        (values, lasts)
    }

    #[test]
    fn each_value_is_of_one_thread_of_one_team() {
        for (first, last, step) in [(0, 99, 1), (3, 40, 7), (5, 5, 1), (1, 0, 1)] {
            let work = signed(first, last, step);
            let expected: Vec<u64> =
                (0..work.count).map(|count| (first + step * count.cast_signed()).cast_unsigned()).collect();
            for (chunk, teams, threads) in
                [(0, 1, 1), (0, 3, 4), (2, 3, 4), (7, 2, 3), (1, 9, 1), (0, 200, 2)]
            {
                let (values, lasts) = values(&work, chunk, teams, threads);
                assert_eq!(values, expected, "{first} {last} {step} {chunk} {teams} {threads}");
                assert_eq!(lasts, usize::from(work.count > 0));
            }
        }
    }

    #[test]
    fn chunks_of_teams_end_with_the_loop() {
        let work = signed(0, 9, 1);
        let parts: Vec<_> = (0..4).map(|team| first_chunk(&work, 4, (4, team))).collect();
        let ends: Vec<_> = parts.iter().map(|part| (part.first, part.last, part.is_last)).collect();
        assert_eq!(ends[..3], [(0, 3, false), (4, 7, false), (8, 9, true)]);
        assert!(ends[3].0 > ends[3].1 && !ends[3].2, "no iteration is left");
        assert!(parts.iter().all(|part| part.stride == 16));
    }

    #[test]
    fn a_team_without_iterations_at_the_end_of_all_numbers_has_none() {
        let work = unsigned(u64::MAX - 1, u64::MAX, 1);
        assert_eq!(of_team(&work, (4, 3)).0.count, 0);
        let (last, has_last) = of_team(&work, (4, 1));
        assert_eq!((last.start, last.count, has_last), (u64::MAX, 1, true));
    }
}
