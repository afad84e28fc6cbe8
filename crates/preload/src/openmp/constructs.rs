//! Loops and sections whose threads have memory in common: for a `scan` or a conditional lastprivate, or for task reductions.

use super::common::{self, Use};
use super::context;
use super::loops::{self, From64};
use super::reduction;
use super::schedule::{Loop, Schedule};
use super::sections;
use super::share::Share;
use super::work_sharing;
use libc::{c_long, c_uint, c_ulonglong, c_void};

/// The schedule that gcc passes by number: 0 is the one that was set while the program runs. As in all loops of gcc's, each thread gets its
/// iterations in rising order; a conditional lastprivate needs that.
pub(super) fn schedule(number: c_long, chunk: u64) -> Schedule {
    // The lower half: gcc extends the bit for rising iterations.
    let number = u32::try_from(number & 0xffff_ffff).unwrap_or(0);
    let schedule = Schedule::of(number, chunk).unwrap_or_else(|| context::get().controls.schedule);
    Schedule { rising: true, ..schedule }
}

/// The thread has entered a construct with reductions, with memory, or without them. The memory's size is where its address
/// is to be.
///
/// # Safety
/// As gcc passes them.
pub(super) unsafe fn begin(reductions: *mut usize, memory: *mut *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        reduction::begin_construct(reductions);
        if !memory.is_null() {
            *memory = common::enter(Use::Program, *memory as usize, 64, |_| {}).cast();
        }
    }
}

/// The first iterations, if the caller wants to know them.
///
/// # Safety
/// Both results are null or can be written to.
unsafe fn first<T: From64>(from: *mut T, to: *mut T) -> bool {
    // SAFETY: the caller's promise.
    from.is_null() || unsafe { loops::next(from, to) }
}

/// Defines the functions that begin a loop.
macro_rules! beginning {
    ($($name:ident $ordered:literal, $unsigned:ident;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            start: c_long, end: c_long, step: c_long, kind: c_long, chunk: c_long,
            from: *mut c_long, to: *mut c_long, reductions: *mut usize, memory: *mut *mut c_void,
        ) -> bool {
            let work = Loop::signed(start, end, step);
            work_sharing::enter(Share::of_loop(work, schedule(kind, chunk.cast_unsigned()), $ordered));
            // SAFETY: forwards what gcc passed.
            unsafe {
                begin(reductions, memory);
                first(from, to)
            }
        }

        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $unsigned(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong, kind: c_long, chunk: c_ulonglong,
            from: *mut c_ulonglong, to: *mut c_ulonglong, reductions: *mut usize, memory: *mut *mut c_void,
        ) -> bool {
            let work = Loop::unsigned(up, start, end, step);
            work_sharing::enter(Share::of_loop(work, schedule(kind, chunk), $ordered));
            // SAFETY: forwards what gcc passed.
            unsafe {
                begin(reductions, memory);
                first(from, to)
            }
        }
    )*};
}

beginning! {
    GOMP_loop_start false, GOMP_loop_ull_start;
    GOMP_loop_ordered_start true, GOMP_loop_ull_ordered_start;
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_sections2_start(
    count: c_uint,
    reductions: *mut usize,
    memory: *mut *mut c_void,
) -> c_uint {
    work_sharing::enter(Share::of_sections(count));
    // SAFETY: forwards what gcc passed.
    unsafe { begin(reductions, memory) };
    sections::next()
}
