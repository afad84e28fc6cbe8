//! The system calls about signals, whose sets and actions the kernel has in a form of its own: a set is one word.

use super::by_number::Taken;
use crate::numbers::low_half;
use crate::signals::{HAS_RESTORER, KernelAction, bits, set_of};
use gondwana_page::to_usize;
use libc::{c_int, c_long, sigset_t};
use std::mem::zeroed;
use std::ptr::null;

/// The bytes of a set.
const SET: usize = size_of::<u64>();

/// Makes such a call; `None` if it is another one.
///
/// # Safety
/// As the system call's.
pub(super) unsafe fn call(number: c_long, [a, b, c, d, ..]: [usize; 6]) -> Option<c_long> {
    // SAFETY: the caller's promise.
    let result = unsafe {
        match number {
            libc::SYS_rt_sigaction if d == SET => {
                act(Taken::of(a), b as *const KernelAction, c as *mut KernelAction)
            }
            libc::SYS_rt_sigprocmask if d == SET => mask(Taken::of(a), b as *const u64, c as *mut u64),
            libc::SYS_rt_sigpending if b == SET => pending(a as *mut u64),
            libc::SYS_rt_sigsuspend if b == SET => libc::sigsuspend(&raw const *of(a as *const u64)?),
            libc::SYS_rt_sigtimedwait if d == SET => {
                libc::sigtimedwait(&raw const *of(a as *const u64)?, b as *mut _, c as *const _)
            }
            _ => return None,
        }
    };
    Some(result.into())
}

/// The set at a place; `None` without one.
unsafe fn of(place: *const u64) -> Option<Box<sigset_t>> {
    // SAFETY: the caller passes null or a set.
    unsafe { place.as_ref() }.map(|&word| Box::new(set_of(word)))
}

unsafe fn act(signal: c_int, new: *const KernelAction, old: *mut KernelAction) -> c_int {
    // SAFETY: the caller passes null or valid places.
    unsafe {
        let new = new.as_ref().map(|new| {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = new.handler;
            action.sa_flags = low_half(to_usize(new.flags)).cast_signed() & !HAS_RESTORER;
            action.sa_mask = set_of(new.mask);
            action
        });
        let mut before: libc::sigaction = zeroed();
        let result = libc::sigaction(signal, new.as_ref().map_or(null(), |new| new), &raw mut before);
        if result == 0 && !old.is_null() {
            let flags = u64::from((before.sa_flags & !HAS_RESTORER).cast_unsigned());
            *old = KernelAction {
                handler: before.sa_sigaction,
                flags,
                restorer: 0,
                mask: bits(&before.sa_mask),
            };
        }
        result
    }
}

unsafe fn mask(how: c_int, new: *const u64, old: *mut u64) -> c_int {
    // SAFETY: the caller passes null or valid places.
    unsafe {
        let mut before: sigset_t = zeroed();
        let new = of(new);
        let result =
            libc::sigprocmask(how, new.as_ref().map_or(null(), |new| &raw const **new), &raw mut before);
        if result == 0 && !old.is_null() {
            *old = bits(&before);
        }
        result
    }
}

unsafe fn pending(result: *mut u64) -> c_int {
    // SAFETY: the caller passes a valid place.
    unsafe {
        let mut set: sigset_t = zeroed();
        let answer = libc::sigpending(&raw mut set);
        if answer == 0 {
            *result = bits(&set);
        }
        answer
    }
}
