//! Interval timers. Their signals are for the process, so node 0 has all timers, and a signal comes once.

use super::calls::on_first;
use libc::{c_int, c_uint, itimerspec, itimerval, timer_t, timeval};

/// A call on a timer, with copies of what its arguments point to.
#[derive(Clone, Copy)]
struct Setting<W, T> {
    which: W,
    flags: c_int,
    new: Option<T>,
    old: T,
}

/// Makes a call on node 0; fills in what was there before.
///
/// # Safety
/// The pointers are null or valid.
unsafe fn set<W: Copy, T: Copy>(
    (which, flags): (W, c_int),
    new: *const T,
    old: *mut T,
    call: fn(&mut Setting<W, T>) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise, but for the alignment, which the kernel does not need; all zero is a valid time.
    let setting = unsafe {
        let new = (!new.is_null()).then(|| new.read_unaligned());
        Setting { which, flags, new, old: std::mem::zeroed() }
    };
    let (setting, result) = on_first(setting, call);
    if result == 0 && !old.is_null() {
        // SAFETY: the caller's promise.
        unsafe { old.write_unaligned(setting.old) };
    }
    result
}

fn pointer<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)
}

/// # Safety
/// As the C library's `setitimer`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int {
    // SAFETY: the caller's arguments, and then private copies of what they point to.
    unsafe {
        set((which, 0), new, old, |setting: &mut Setting<c_int, itimerval>| {
            crate::real!(setitimer: fn(c_int, *const itimerval, *mut itimerval) -> c_int)(
                setting.which,
                pointer(&setting.new),
                &raw mut setting.old,
            )
        })
    }
}

/// # Safety
/// As the C library's `getitimer`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getitimer(which: c_int, result: *mut itimerval) -> c_int {
    // SAFETY: as for `setitimer`.
    unsafe {
        set((which, 0), std::ptr::null(), result, |setting: &mut Setting<c_int, itimerval>| {
            crate::real!(getitimer: fn(c_int, *mut itimerval) -> c_int)(setting.which, &raw mut setting.old)
        })
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn alarm(seconds: c_uint) -> c_uint {
    let (_, left) = on_first(seconds, |seconds| {
        // SAFETY: touches no memory.
        unsafe { crate::real!(alarm: fn(c_uint) -> c_uint)(*seconds) }.cast_signed()
    });
    left.cast_unsigned()
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ualarm(first: c_uint, interval: c_uint) -> c_uint {
    let time = |micros: c_uint| timeval {
        tv_sec: i64::from(micros / 1_000_000),
        tv_usec: i64::from(micros % 1_000_000),
    };
    let new = itimerval { it_interval: time(interval), it_value: time(first) };
    let mut old = itimerval { it_interval: time(0), it_value: time(0) };
    // SAFETY: valid times.
    unsafe { setitimer(libc::ITIMER_REAL, &raw const new, &raw mut old) };
    c_uint::try_from(old.it_value.tv_sec * 1_000_000 + old.it_value.tv_usec).unwrap_or(c_uint::MAX)
}

/// A timer's name, which may be a pointer that only node 0 follows.
type Name = usize;

/// # Safety
/// As the C library's `timer_settime`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn timer_settime(
    timer: timer_t,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    // SAFETY: as for `setitimer`.
    unsafe {
        set((timer as Name, flags), new, old, |setting: &mut Setting<Name, itimerspec>| {
            crate::real!(timer_settime: fn(Name, c_int, *const itimerspec, *mut itimerspec) -> c_int)(
                setting.which,
                setting.flags,
                pointer(&setting.new),
                &raw mut setting.old,
            )
        })
    }
}

/// # Safety
/// As the C library's `timer_gettime`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn timer_gettime(timer: timer_t, result: *mut itimerspec) -> c_int {
    // SAFETY: as for `setitimer`.
    unsafe {
        set((timer as Name, 0), std::ptr::null(), result, |setting: &mut Setting<Name, itimerspec>| {
            crate::real!(timer_gettime: fn(Name, *mut itimerspec) -> c_int)(
                setting.which,
                &raw mut setting.old,
            )
        })
    }
}

/// # Safety
/// As the C library's `timer_delete`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn timer_delete(timer: timer_t) -> c_int {
    let deleted = on_first(timer as Name, |timer| {
        // SAFETY: the caller's timer.
        unsafe { crate::real!(timer_delete: fn(Name) -> c_int)(*timer) }
    });
    deleted.1
}

/// # Safety
/// As the C library's `timer_getoverrun`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn timer_getoverrun(timer: timer_t) -> c_int {
    let counted = on_first(timer as Name, |timer| {
        // SAFETY: the caller's timer.
        unsafe { crate::real!(timer_getoverrun: fn(Name) -> c_int)(*timer) }
    });
    counted.1
}
