//! Loops whose iterations are dealt out while they run.

use super::Place;
use super::loops::{ANY_ORDER, FromBits, MODIFIERS, RISING, signed, unsigned};
use crate::openmp::schedule::{Kind, Loop, Schedule};
use crate::openmp::share::Share;
use crate::openmp::work_sharing;
use crate::openmp::{context, doacross};
use libc::c_int;

/// The number of the first ordered schedule, less that of the first one.
const ORDERED: c_int = 32;
const CHUNKED: c_int = 33;
const DYNAMIC: c_int = 35;
const GUIDED: c_int = 36;
const RUNTIME: c_int = 37;
const TRAPEZOIDAL: c_int = 39;

/// A schedule by its number in these compilers, and whether the loop has ordered parts.
fn schedule(number: c_int, chunk: u64) -> (Schedule, bool) {
    // With neither of them, compilers for OpenMP before 5 let no thread get iterations out of order.
    let (modifiers, number) = (number & MODIFIERS, number & !MODIFIERS);
    let is_ordered = (CHUNKED + ORDERED..=TRAPEZOIDAL + ORDERED).contains(&number);
    let schedule = |kind, chunk| Schedule { kind, chunk, rising: modifiers != ANY_ORDER };
    let schedule = match if is_ordered { number - ORDERED } else { number } {
        CHUNKED => schedule(Kind::Static, chunk.max(1)),
        DYNAMIC => schedule(Kind::Dynamic, chunk),
        GUIDED | TRAPEZOIDAL => schedule(Kind::Guided, chunk),
        RUNTIME => {
            let set = context::get().controls.schedule;
            Schedule { rising: set.rising || modifiers == RISING, ..set }
        }
        _ => schedule(Kind::Static, 0),
    };
    (schedule, is_ordered)
}

/// Enters a loop with a schedule by its number.
pub(super) fn begin(number: c_int, work: Loop, chunk: i64) {
    let (schedule, is_ordered) = schedule(number, u64::try_from(chunk).unwrap_or(1));
    // In a nest, no node has iterations that come before those of its threads.
    work_sharing::enter(Share::of_loop(work, schedule, is_ordered || doacross::is_inside()));
}

/// The next iterations of the calling thread, which leaves the loop if there are none: the bits of the first and of the last value, and
/// whether the last iteration is among them.
fn next() -> Option<(u64, u64, bool)> {
    let work = context::get().share?.work;
    let Some((first, end)) = work_sharing::next() else {
        work_sharing::leave();
        return None;
    };
    Some((first, end.wrapping_sub(work.step), end == work.end))
}

/// Defines the functions of loops over variables of a type.
macro_rules! loops {
    ($($type:ident $step:ident $of:ident $begin:ident $next:ident $end:ident;)*) => {$(
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $begin(
            _place: Place, _thread: c_int, schedule: c_int, first: $type, last: $type, step: $step, chunk: $step,
        ) {
            begin(schedule, $of(first.into(), last.into(), step.into()), chunk.into());
        }

        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $next(
            _place: Place, _thread: c_int, is_last: *mut c_int, first: *mut $type, last: *mut $type, stride: *mut $step,
        ) -> c_int {
            let step = context::get().share.map_or(1, |share| share.work.step);
            let Some((from, to, at_end)) = next() else { return 0 };
            // SAFETY: the caller passes places for the results.
            unsafe {
                *first = $type::from_bits(from);
                *last = $type::from_bits(to);
                *stride = $step::from_bits(step);
                if !is_last.is_null() {
                    *is_last = c_int::from(at_end);
                }
            }
            1
        }

        /// The end of a thread's ordered part: its turn passes when it gets its next chunk.
        ///
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $end(_place: Place, _thread: c_int) {}
    )*};
}

loops! {
    i32 i32 signed __kmpc_dispatch_init_4 __kmpc_dispatch_next_4 __kmpc_dispatch_fini_4;
    u32 i32 unsigned __kmpc_dispatch_init_4u __kmpc_dispatch_next_4u __kmpc_dispatch_fini_4u;
    i64 i64 signed __kmpc_dispatch_init_8 __kmpc_dispatch_next_8 __kmpc_dispatch_fini_8;
    u64 i64 unsigned __kmpc_dispatch_init_8u __kmpc_dispatch_next_8u __kmpc_dispatch_fini_8u;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_known_by_their_numbers() {
        let is = |number, wanted, kind, chunk, rising, is_ordered| {
            assert_eq!(schedule(number, wanted), (Schedule { kind, chunk, rising }, is_ordered));
        };
        is(35 | ANY_ORDER, 7, Kind::Dynamic, 7, false, false);
        is(35 | RISING, 7, Kind::Dynamic, 7, true, false);
        is(35, 7, Kind::Dynamic, 7, true, false);
        is(66, 1, Kind::Static, 0, true, true);
        is(65, 0, Kind::Static, 1, true, true);
        is(68, 2, Kind::Guided, 2, true, true);
    }
}
