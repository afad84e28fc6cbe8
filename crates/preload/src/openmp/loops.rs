//! Loops whose iterations are dealt out while they run.

use super::cancel;
use super::context;
use super::membership::{self, Body};
use super::region;
use super::schedule::{Kind, Loop, Schedule};
use super::share::Share;
use super::times::{self, Ends, telling_return};
use super::work_sharing;
use libc::{c_long, c_uint, c_ulonglong, c_void};

/// Deals out the next iterations of the loop that the thread is in.
///
/// # Safety
/// Both results can be written to.
pub(super) unsafe fn next<T: From64>(start: *mut T, end: *mut T) -> bool {
    let Some((from, to)) = work_sharing::next() else { return false };
    // SAFETY: the caller's promise.
    unsafe {
        start.write(T::from64(from));
        end.write(T::from64(to));
    }
    true
}

/// The types of loop variables.
pub(super) trait From64 {
    fn from64(number: u64) -> Self;
}

impl From64 for c_long {
    fn from64(number: u64) -> Self {
        number.cast_signed()
    }
}

impl From64 for c_ulonglong {
    fn from64(number: u64) -> Self {
        number
    }
}

/// The schedule that a loop names. Each thread gets its iterations in rising order, as from gcc's own library, whatever the name of the
/// function says: programs that were never run by another one may depend on it.
fn named(kind: Kind, chunk: u64) -> Schedule {
    Schedule { kind, chunk, rising: true }
}

/// The schedule that was set while the program runs.
fn runtime() -> Schedule {
    Schedule { rising: true, ..context::get().controls.schedule }
}

/// Defines the functions that start a loop over signed numbers, in the present team or with a new team.
macro_rules! beginning {
    ($($kind:ident: $start:ident $($ordered:ident)?, $parallel:ident $($old:ident)?;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $start(
            start: c_long, end: c_long, step: c_long, chunk: c_long, from: *mut c_long, to: *mut c_long,
        ) -> bool {
            work_sharing::enter(Share::of_loop(Loop::signed(start, end, step), named(Kind::$kind, chunk.cast_unsigned()), false));
            // SAFETY: forwards the caller's places.
            unsafe { next(from, to) }
        }

        $(/// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $ordered(
            start: c_long, end: c_long, step: c_long, chunk: c_long, from: *mut c_long, to: *mut c_long,
        ) -> bool {
            work_sharing::enter(Share::of_loop(Loop::signed(start, end, step), named(Kind::$kind, chunk.cast_unsigned()), true));
            // SAFETY: forwards the caller's places.
            unsafe { next(from, to) }
        })?

        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $parallel(
            function: Body, data: *mut c_void, threads: c_uint,
            start: c_long, end: c_long, step: c_long, chunk: c_long, _flags: c_uint,
        ) {
            let work = Share::of_loop(Loop::signed(start, end, step), named(Kind::$kind, chunk.cast_unsigned()), false);
            // SAFETY: forwards the caller's function and argument.
            unsafe { region::run(function, data, threads, Some(work)) };
        }

        $(/// # Safety
        /// Called by code that an older gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $old(
            function: Body, data: *mut c_void, threads: c_uint,
            start: c_long, end: c_long, step: c_long, chunk: c_long,
        ) {
            let work = Share::of_loop(Loop::signed(start, end, step), named(Kind::$kind, chunk.cast_unsigned()), false);
            region::begin(function, data, threads, Some(work)).keep();
        })?
    )*};
}

beginning! {
    Static: GOMP_loop_static_start GOMP_loop_ordered_static_start,
        GOMP_parallel_loop_static GOMP_parallel_loop_static_start;
    Dynamic: GOMP_loop_dynamic_start GOMP_loop_ordered_dynamic_start,
        GOMP_parallel_loop_dynamic GOMP_parallel_loop_dynamic_start;
    Guided: GOMP_loop_guided_start GOMP_loop_ordered_guided_start,
        GOMP_parallel_loop_guided GOMP_parallel_loop_guided_start;
    Dynamic: GOMP_loop_nonmonotonic_dynamic_start, GOMP_parallel_loop_nonmonotonic_dynamic;
    Guided: GOMP_loop_nonmonotonic_guided_start, GOMP_parallel_loop_nonmonotonic_guided;
}

/// Defines the functions that begin a loop whose schedule is set while the program runs.
macro_rules! beginning_as_set {
    ($($name:ident $ordered:literal;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            start: c_long, end: c_long, step: c_long, from: *mut c_long, to: *mut c_long,
        ) -> bool {
            work_sharing::enter(Share::of_loop(Loop::signed(start, end, step), runtime(), $ordered));
            // SAFETY: forwards the caller's places.
            unsafe { next(from, to) }
        }
    )*};
}

beginning_as_set! {
    GOMP_loop_runtime_start false;
    GOMP_loop_nonmonotonic_runtime_start false;
    GOMP_loop_maybe_nonmonotonic_runtime_start false;
    GOMP_loop_ordered_runtime_start true;
}

/// Defines the functions that run such a loop with a new team.
macro_rules! parallel_as_set {
    ($($name:ident;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            function: Body, data: *mut c_void, threads: c_uint,
            start: c_long, end: c_long, step: c_long, _flags: c_uint,
        ) {
            let work = Share::of_loop(Loop::signed(start, end, step), runtime(), false);
            // SAFETY: forwards the caller's function and argument.
            unsafe { region::run(function, data, threads, Some(work)) };
        }
    )*};
}

parallel_as_set! {
    GOMP_parallel_loop_runtime;
    GOMP_parallel_loop_nonmonotonic_runtime;
    GOMP_parallel_loop_maybe_nonmonotonic_runtime;
}

/// # Safety
/// Called by code that an older gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel_loop_runtime_start(
    function: Body,
    data: *mut c_void,
    threads: c_uint,
    start: c_long,
    end: c_long,
    step: c_long,
) {
    let work = Share::of_loop(Loop::signed(start, end, step), runtime(), false);
    region::begin(function, data, threads, Some(work)).keep();
}

/// Defines the functions that begin a loop over unsigned numbers.
macro_rules! beginning_unsigned {
    ($($kind:ident $ordered:literal $name:ident;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong, chunk: c_ulonglong,
            from: *mut c_ulonglong, to: *mut c_ulonglong,
        ) -> bool {
            let work = Loop::unsigned(up, start, end, step);
            work_sharing::enter(Share::of_loop(work, named(Kind::$kind, chunk), $ordered));
            // SAFETY: forwards the caller's places.
            unsafe { next(from, to) }
        }
    )*};
}

beginning_unsigned! {
    Static false GOMP_loop_ull_static_start;
    Dynamic false GOMP_loop_ull_dynamic_start;
    Guided false GOMP_loop_ull_guided_start;
    Dynamic false GOMP_loop_ull_nonmonotonic_dynamic_start;
    Guided false GOMP_loop_ull_nonmonotonic_guided_start;
    Static true GOMP_loop_ull_ordered_static_start;
    Dynamic true GOMP_loop_ull_ordered_dynamic_start;
    Guided true GOMP_loop_ull_ordered_guided_start;
}

/// Defines the functions that start such a loop with `schedule(runtime)`.
macro_rules! beginning_unsigned_as_set {
    ($($name:ident $ordered:literal;)*) => {$(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            up: bool, start: c_ulonglong, end: c_ulonglong, step: c_ulonglong,
            from: *mut c_ulonglong, to: *mut c_ulonglong,
        ) -> bool {
            work_sharing::enter(Share::of_loop(Loop::unsigned(up, start, end, step), runtime(), $ordered));
            // SAFETY: forwards the caller's places.
            unsafe { next(from, to) }
        }
    )*};
}

beginning_unsigned_as_set! {
    GOMP_loop_ull_runtime_start false;
    GOMP_loop_ull_nonmonotonic_runtime_start false;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_start false;
    GOMP_loop_ull_ordered_runtime_start true;
}

/// Defines the functions that get the next chunk: the loop knows its schedule.
macro_rules! continuing {
    ($($type:ty: $($name:ident)*;)*) => {$($(
        /// # Safety
        /// Called by code that gcc has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(from: *mut $type, to: *mut $type) -> bool {
            // SAFETY: forwards the caller's places.
            unsafe { next(from, to) }
        }
    )*)*};
}

continuing! {
    c_long: GOMP_loop_static_next GOMP_loop_dynamic_next GOMP_loop_guided_next GOMP_loop_runtime_next
        GOMP_loop_nonmonotonic_dynamic_next GOMP_loop_nonmonotonic_guided_next GOMP_loop_nonmonotonic_runtime_next
        GOMP_loop_maybe_nonmonotonic_runtime_next GOMP_loop_ordered_static_next GOMP_loop_ordered_dynamic_next
        GOMP_loop_ordered_guided_next GOMP_loop_ordered_runtime_next;
    c_ulonglong: GOMP_loop_ull_static_next GOMP_loop_ull_dynamic_next GOMP_loop_ull_guided_next
        GOMP_loop_ull_runtime_next GOMP_loop_ull_nonmonotonic_dynamic_next GOMP_loop_ull_nonmonotonic_guided_next
        GOMP_loop_ull_nonmonotonic_runtime_next GOMP_loop_ull_maybe_nonmonotonic_runtime_next
        GOMP_loop_ull_ordered_static_next GOMP_loop_ull_ordered_dynamic_next GOMP_loop_ull_ordered_guided_next
        GOMP_loop_ull_ordered_runtime_next;
}

telling_return! {
    "rdi": GOMP_loop_end by end_at GOMP_loop_end_cancel by end_cancel_at GOMP_loop_end_nowait by end_nowait_at;
}

extern "C" fn end_at(returns_to: usize) {
    work_sharing::leave();
    membership::barrier(Ends::Call(returns_to));
}

extern "C" fn end_cancel_at(returns_to: usize) -> bool {
    work_sharing::leave();
    cancel::barrier(Ends::Call(returns_to))
}

extern "C" fn end_nowait_at(returns_to: usize) {
    work_sharing::leave();
    times::ended(returns_to);
}
