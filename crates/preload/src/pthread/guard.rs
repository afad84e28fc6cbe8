//! Guards of function-local statics in C++.
//!
//! Compiled code first reads the guard's first byte. Under release consistency that read is no acquire, so the byte
//! stays 0 in shared memory and each pass calls this function, which asks the node.

use libc::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

/// The half of a guard that compiled code does not read.
fn mark<'a>(guard: *mut i64) -> &'a AtomicU32 {
    // SAFETY: a guard has eight bytes and is aligned for them.
    unsafe { AtomicU32::from_ptr(guard.cast::<u32>().add(1)) }
}

/// # Safety
/// As the C++ runtime's function of this name.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __cxa_guard_acquire(guard: *mut i64) -> c_int {
    match super::sharing(guard) {
        Some(node) => {
            c_int::from(node.once_enter(guard as usize, || mark(guard).load(Ordering::Relaxed) != 0))
        }
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(__cxa_guard_acquire: fn(*mut i64) -> c_int)(guard) },
    }
}

/// # Safety
/// As the C++ runtime's function of this name.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __cxa_guard_release(guard: *mut i64) {
    match super::sharing(guard) {
        Some(node) => {
            mark(guard).store(1, Ordering::Relaxed);
            node.once_done(guard as usize);
        }
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(__cxa_guard_release: fn(*mut i64))(guard) },
    }
}

/// # Safety
/// As the C++ runtime's function of this name.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn __cxa_guard_abort(guard: *mut i64) {
    match super::sharing(guard) {
        Some(node) => node.once_failed(guard as usize),
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(__cxa_guard_abort: fn(*mut i64))(guard) },
    }
}
