//! Static loops: each thread is told its part.

use super::Place;
use crate::openmp::context;
use crate::openmp::schedule::{Loop, fixed};
use crate::openmp::times::{self, telling_return};
use libc::c_int;

/// The schedule of a loop in chunks.
pub(super) const CHUNKED: c_int = 33;
/// The schedules of `distribute`, over the teams of a league: in chunks, and without.
const DISTRIBUTED_CHUNKED: c_int = 91;
const DISTRIBUTED: c_int = 92;
/// The bits that say `monotonic` and `nonmonotonic`.
pub(super) const RISING: c_int = 1 << 29;
pub(super) const ANY_ORDER: c_int = 1 << 30;
pub(super) const MODIFIERS: c_int = RISING | ANY_ORDER;

/// A part of a loop, as the bits of numbers: the first and the last value of the loop variable, and how far the thread's chunks are apart.
pub(super) struct Part {
    pub first: u64,
    pub last: u64,
    pub stride: u64,
    /// The last iteration is in it.
    pub is_last: bool,
}

/// Numbers modulo 2 to the power of their width.
pub(super) trait FromBits {
    /// The number that these bits, the lowest ones as far as they matter, are.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl FromBits for $type {
            fn from_bits(bits: u64) -> Self {
                bits.to_le_bytes().first_chunk().map_or(0, |low| Self::from_le_bytes(*low))
            }
        }
    )*};
}

numbers! { i32 u32 i64 u64 }

/// A loop over signed numbers from `first` to `last`, both included.
pub(super) fn signed(first: i64, last: i64, step: i64) -> Loop {
    let (any, distance) = match step > 0 {
        true => (first <= last, last.wrapping_sub(first)),
        false => (first >= last, first.wrapping_sub(last)),
    };
    whole(first.cast_unsigned(), step, any, distance.cast_unsigned())
}

/// A loop over unsigned numbers from `first` to `last`, both included.
pub(super) fn unsigned(first: u64, last: u64, step: i64) -> Loop {
    let (any, distance) = match step > 0 {
        true => (first <= last, last.wrapping_sub(first)),
        false => (first >= last, first.wrapping_sub(last)),
    };
    whole(first, step, any, distance)
}

fn whole(start: u64, step: i64, any: bool, distance: u64) -> Loop {
    let count = if any { (distance / step.unsigned_abs().max(1)).saturating_add(1) } else { 0 };
    let step = step.cast_unsigned();
    Loop { start, end: start.wrapping_add(step.wrapping_mul(count)), step, count }
}

/// The part of thread `number` of `threads`: without chunks if `chunk` is 0, and else its first chunk.
pub(super) fn part(work: &Loop, chunk: u64, threads: u64, number: u64) -> Part {
    let value = |iteration: u64| work.start.wrapping_add(work.step.wrapping_mul(iteration));
    let apart = if chunk > 0 { chunk.wrapping_mul(threads) } else { work.count.max(1) };
    let stride = work.step.wrapping_mul(apart);
    let Some(range) = fixed(work.count, chunk, threads, number, 0) else {
        // No iteration is between these.
        return Part {
            first: value(work.count),
            last: value(work.count.wrapping_sub(1)),
            stride,
            is_last: false,
        };
    };
    // The program itself ends a chunk that goes on behind the last iteration.
    let (end, is_last) = match chunk {
        0 => (range.end, range.end == work.count),
        _ => (range.start + chunk, (work.count - 1) / chunk % threads == number),
    };
    Part { first: value(range.start), last: value(end - 1), stride, is_last }
}

/// How many teams there are, and which of them the calling thread is in.
pub(super) fn teams() -> (u64, u64) {
    let league = context::get().league;
    let small = |number: c_int| u64::try_from(number).unwrap_or(0);
    (small(league.teams).max(1), small(league.team))
}

/// How many threads the team has, and which of them is the calling one.
pub(super) fn threads() -> (u64, u64) {
    let context = context::get();
    (context.threads().into(), context.number.into())
}

/// Among how many a loop is divided, and which of them the calling thread is: the threads of its team, or the teams of its league.
fn members(schedule: c_int) -> (u64, u64) {
    match schedule {
        DISTRIBUTED | DISTRIBUTED_CHUNKED => teams(),
        _ => threads(),
    }
}

/// The iterations of a chunk, by the caller's argument.
pub(super) fn chunk_of(argument: impl TryInto<u64>) -> u64 {
    argument.try_into().unwrap_or(1).max(1)
}

/// Writes a part to the caller's places.
macro_rules! tell_part {
    ($part:expr, $type:ident $first:ident $last:ident, $step:ident $stride:ident, $is_last:ident) => {
        *$first = $type::from_bits($part.first);
        *$last = $type::from_bits($part.last);
        *$stride = $step::from_bits($part.stride);
        if !$is_last.is_null() {
            *$is_last = c_int::from($part.is_last);
        }
    };
}

pub(super) use tell_part;

/// Defines the functions that begin a static loop.
macro_rules! beginning {
    ($($name:ident $type:ident $step:ident $of:ident;)*) => {$(
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            _place: Place, _thread: c_int, schedule: c_int, is_last: *mut c_int,
            first: *mut $type, last: *mut $type, stride: *mut $step, step: $step, chunk: $step,
        ) {
            let schedule = schedule & !MODIFIERS;
            let chunk = match schedule {
                CHUNKED | DISTRIBUTED_CHUNKED => chunk_of(chunk),
                _ => 0,
            };
            let (members, member) = members(schedule);
            // SAFETY: the caller passes the loop's ends and places for the results.
            unsafe {
                let work = $of((*first).into(), (*last).into(), step.into());
                let part = part(&work, chunk, members, member);
                tell_part!(part, $type first last, $step stride, is_last);
            }
        }
    )*};
}

beginning! {
    __kmpc_for_static_init_4 i32 i32 signed;
    __kmpc_for_static_init_4u u32 i32 unsigned;
    __kmpc_for_static_init_8 i64 i64 signed;
    __kmpc_for_static_init_8u u64 i64 unsigned;
}

telling_return! {
    "rdx": __kmpc_for_static_fini by end_at;
}

extern "C" fn end_at(_place: Place, _thread: c_int, returns_to: usize) {
    times::ended(returns_to);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that the threads of a team run, chunk by chunk as a program does.
    fn values(work: &Loop, last: i64, chunk: u64, threads: u64) -> Vec<i64> {
        let step = work.step.cast_signed();
        let mut values = vec![];
        for number in 0..threads {
            let Part { first, last: end, stride, .. } = part(work, chunk, threads, number);
            let (mut first, mut end) = (first.cast_signed(), end.cast_signed());
            let inside = |value: i64| if step > 0 { value <= last } else { value >= last };
            while inside(first) {
                let mut value = first;
                while inside(value) && (if step > 0 { value <= end } else { value >= end }) {
                    values.push(value);
                    value += step;
                }
                if chunk == 0 {
                    break;
                }
                (first, end) = (first + stride.cast_signed(), end + stride.cast_signed());
            }
        }
        values.sort_unstable();
        values
    }

    #[test]
    fn each_value_is_in_one_part() {
        for (first, last, step) in [(0, 9, 1), (5, -7, -2), (3, 3, 1), (-4, 11, 5), (0, 100, 3), (2, 1, 1)] {
            let work = signed(first, last, step);
            let mut expected: Vec<i64> =
                (0..work.count.cast_signed()).map(|count| first + step * count).collect();
            assert!(expected.iter().all(|value| (first.min(last)..=first.max(last)).contains(value)));
            expected.sort_unstable();
            for chunk in [0, 1, 3, 50] {
                for threads in 1..6 {
                    assert_eq!(
                        values(&work, last, chunk, threads),
                        expected,
                        "{first} {last} {step} {chunk} {threads}"
                    );
                    let last =
                        (0..threads).filter(|number| part(&work, chunk, threads, *number).is_last).count();
                    assert_eq!(last, usize::from(work.count > 0));
                }
            }
        }
    }

    #[test]
    fn unsigned_loops_use_their_whole_range() {
        let work = unsigned(u64::MAX - 2, u64::MAX, 1);
        assert_eq!((work.count, work.end), (3, 0));
        assert_eq!(unsigned(10, 0, -5).count, 3);
        assert_eq!(unsigned(1, 0, 1).count, 0);
    }
}
