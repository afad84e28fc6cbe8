//! Waiting for child processes. The kernel forgets a child before it writes what became of it.

use super::written::written;
use crate::pthread::cancel::at_point_if;
use libc::{c_int, c_uint, id_t, pid_t, rusage, siginfo_t};
use std::cell::Cell;
use std::mem::zeroed;
use std::ptr::null_mut;

/// What became of a child.
#[derive(Clone, Copy)]
struct Ended {
    status: c_int,
    usage: rusage,
    info: siginfo_t,
}

thread_local! {
    /// Where the kernel writes.
    // SAFETY: all-zero structures are valid.
    static ENDED: Cell<Ended> = const { Cell::new(unsafe { zeroed() }) };
}

/// # Safety
/// As the C library's `wait4`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn wait4(
    pid: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    at_point_if(true, || {
        let (child, ended) = written(&ENDED, |place| {
            // SAFETY: the place is this thread's own.
            unsafe {
                let (status, used) = (&raw mut (*place).status, &raw mut (*place).usage);
                let used = if usage.is_null() { null_mut() } else { used };
                crate::real!(wait4: fn(pid_t, *mut c_int, c_int, *mut rusage) -> pid_t)(
                    pid, status, options, used,
                )
            }
        });
        if child > 0 {
            // SAFETY: the caller passes null or places for the results.
            unsafe {
                put(status, ended.status);
                put(usage, ended.usage);
            }
        }
        child
    })
}

/// # Safety
/// As the C library's `waitid`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn waitid(
    kind: c_uint,
    id: id_t,
    info: *mut siginfo_t,
    options: c_int,
) -> c_int {
    at_point_if(true, || {
        // SAFETY: the place is this thread's own.
        let (failed, ended) = written(&ENDED, |place| unsafe {
            let info = if info.is_null() { null_mut() } else { &raw mut (*place).info };
            crate::real!(waitid: fn(c_uint, id_t, *mut siginfo_t, c_int) -> c_int)(kind, id, info, options)
        });
        if failed == 0 {
            // SAFETY: the caller passes null or a place for the result.
            unsafe { put(info, ended.info) };
        }
        failed
    })
}

/// # Safety
/// The pointer is null or valid.
unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
    }
}

/// # Safety
/// As the C library's `waitpid`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    // SAFETY: forwards the caller's arguments.
    unsafe { wait4(pid, status, options, null_mut()) }
}

/// # Safety
/// As the C library's `wait`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn wait(status: *mut c_int) -> pid_t {
    // SAFETY: forwards the caller's argument.
    unsafe { wait4(-1, status, 0, null_mut()) }
}

/// # Safety
/// As the C library's `wait3`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn wait3(
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    // SAFETY: forwards the caller's arguments.
    unsafe { wait4(-1, status, options, usage) }
}
