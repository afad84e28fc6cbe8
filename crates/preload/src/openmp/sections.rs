//! `sections`: numbers handed out one by one.

use super::cancel;
use super::membership;
use super::region;
use super::share::Share;
use super::times::{self, Ends, telling_return};
use super::work_sharing;
use libc::{c_uint, c_void};

pub(super) fn next() -> c_uint {
    work_sharing::next().map_or(0, |(number, _)| c_uint::try_from(number).unwrap_or(c_uint::MAX))
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_sections_start(count: c_uint) -> c_uint {
    work_sharing::enter(Share::of_sections(count));
    next()
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_sections_next() -> c_uint {
    next()
}

telling_return! {
    "rdi": GOMP_sections_end by end_at GOMP_sections_end_cancel by end_cancel_at GOMP_sections_end_nowait by end_nowait_at;
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

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel_sections(
    function: membership::Body,
    data: *mut c_void,
    threads: c_uint,
    count: c_uint,
    _flags: c_uint,
) {
    // SAFETY: forwards the caller's function and argument.
    unsafe { region::run(function, data, threads, Some(Share::of_sections(count))) };
}

/// # Safety
/// Called by code that an older gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel_sections_start(
    function: membership::Body,
    data: *mut c_void,
    threads: c_uint,
    count: c_uint,
) {
    region::begin(function, data, threads, Some(Share::of_sections(count))).keep();
}
