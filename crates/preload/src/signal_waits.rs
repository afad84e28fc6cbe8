//! Calls that wait for a signal with another mask.

use crate::pthread::cancel::at_point_if;
use crate::signals::{pthread_sigmask, without_faults};
use libc::{c_int, sigset_t};
use std::mem::zeroed;

/// # Safety
/// As the C library's `sigsuspend`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sigsuspend(set: *const sigset_t) -> c_int {
    // SAFETY: the caller passes a valid set; the call gets a private copy.
    at_point_if(true, || unsafe {
        let mask = without_faults(libc::SIG_SETMASK, set);
        let mask = mask.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        crate::real!(sigsuspend: fn(*const sigset_t) -> c_int)(mask)
    })
}

/// # Safety
/// As the C library's `sigpause` of X/Open: waits with a signal taken out of the mask.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __xpg_sigpause(signal: c_int) -> c_int {
    // SAFETY: the sets are this function's own.
    unsafe {
        let mut set: sigset_t = zeroed();
        pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        if libc::sigdelset(&raw mut set, signal) == -1 { -1 } else { sigsuspend(&raw const set) }
    }
}

/// # Safety
/// As the C library's `sigpause` of BSD: waits with these of the first 32 signals blocked.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigpause(mask: c_int) -> c_int {
    // SAFETY: the set is this function's own.
    unsafe {
        let mut set: sigset_t = zeroed();
        for signal in (1..=32).filter(|signal| mask.cast_unsigned() >> (signal - 1) & 1 != 0) {
            libc::sigaddset(&raw mut set, signal);
        }
        sigsuspend(&raw const set)
    }
}

/// # Safety
/// As the C library's function of this name: either of the two.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __sigpause(signal_or_mask: c_int, is_signal: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe { if is_signal != 0 { __xpg_sigpause(signal_or_mask) } else { sigpause(signal_or_mask) } }
}
