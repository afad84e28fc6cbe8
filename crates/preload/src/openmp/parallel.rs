//! `parallel` and `barrier`.

use super::membership::{self, Body};
use super::region;
use super::times::{Ends, telling_return};
use libc::{c_uint, c_void};

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel(
    function: Body,
    data: *mut c_void,
    threads: c_uint,
    _flags: c_uint,
) {
    // SAFETY: forwards the caller's function and argument.
    unsafe { region::run(function, data, threads, None) };
}

/// # Safety
/// Called by code that an older gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel_start(function: Body, data: *mut c_void, threads: c_uint) {
    region::begin(function, data, threads, None).keep();
}

/// # Safety
/// Called by code that an older gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_parallel_end() {
    region::end_kept();
}

telling_return! {
    "rdi": GOMP_barrier by barrier_at;
}

extern "C" fn barrier_at(returns_to: usize) {
    membership::barrier(Ends::Call(returns_to));
}
