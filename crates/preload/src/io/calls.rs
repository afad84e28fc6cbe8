//! System calls with plain buffers: sockets, time, signals, processes.

use super::Buffer;
use super::channels::NEW;
use crate::accesses;
use crate::numbers::many;
use crate::process::identity::kernel_number;
use crate::process::scheduling::pause;
use crate::pthread::cancel::{at_point, at_point_if};
use gondwana_memory::PAGE_SIZE;
use libc::{
    c_char, c_int, c_uint, c_void, clockid_t, gid_t, off_t, pid_t, sigset_t, size_t, sockaddr, socklen_t,
    ssize_t, timespec, timeval, timezone, uid_t, utsname,
};

/// Length of the address buffer that a call may fill, or 0.
pub(super) fn length_at(length: *const socklen_t) -> usize {
    // SAFETY: the caller of the wrapped function passes null or a pointer to a length.
    unsafe { accesses::load(length) }.unwrap_or(0) as usize
}

/// Bytes of the sets that `capget` fills in.
const CAPABILITIES: usize = 24;

/// The buffer for this many groups.
fn groups_at(groups: *mut gid_t, count: usize) -> Buffer {
    Buffer::write(groups, count * size_of::<gid_t>())
}

crate::guarded! {
    fn getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t { Buffer::write(buffer, count) }
    fn pipe[; opening_two ends](ends: *mut c_int) -> c_int { Buffer::write(ends, 8) }
    fn pipe2[; opening_two ends](ends: *mut c_int, flags: c_int) -> c_int { Buffer::write(ends, 8) }
    fn socketpair[; opening_two ends](domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int { Buffer::write(ends, 8) }
    fn bind[fd](fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int { Buffer::read(address, length as usize) }
    fn connect[fd; giving fd](fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
        Buffer::read(address, length as usize)
    }
    fn getsockname[fd](fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
        Buffer::result(length), Buffer::write(address, length_at(length))
    }
    fn getpeername[fd](fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
        Buffer::result(length), Buffer::write(address, length_at(length))
    }
    fn setsockopt[fd](fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int {
        Buffer::read(value, length as usize)
    }
    fn settimeofday(time: *const timeval, zone: *const timezone) -> c_int { Buffer::value(time), Buffer::value(zone) }
    fn clock_getres(clock: clockid_t, result: *mut timespec) -> c_int { Buffer::result(result) }
    fn uname(result: *mut utsname) -> c_int { Buffer::result(result) }
    fn sysinfo(result: *mut libc::sysinfo) -> c_int { Buffer::result(result) }
    fn gethostname(name: *mut c_char, length: size_t) -> c_int { Buffer::write(name, length) }
    fn getentropy(buffer: *mut c_void, count: size_t) -> c_int { Buffer::write(buffer, count) }
    fn signalfd[fd; opening fd](fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int { Buffer::value(mask) }
    fn sigpending(result: *mut sigset_t) -> c_int { Buffer::result(result) }
    fn clock_settime(clock: clockid_t, time: *const timespec) -> c_int { Buffer::value(time) }
    fn adjtimex(result: *mut libc::timex) -> c_int { Buffer::result(result) }
    fn getgroups(count: c_int, groups: *mut gid_t) -> c_int { groups_at(groups, many(count)) }
    fn getresuid(real: *mut uid_t, effective: *mut uid_t, saved: *mut uid_t) -> c_int {
        Buffer::result(real), Buffer::result(effective), Buffer::result(saved)
    }
    fn getresgid(real: *mut gid_t, effective: *mut gid_t, saved: *mut gid_t) -> c_int {
        Buffer::result(real), Buffer::result(effective), Buffer::result(saved)
    }
    fn sched_rr_get_interval(pid: pid_t, result: *mut timespec) -> c_int { Buffer::result(result) }
    fn mincore(start: *mut c_void, length: size_t, result: *mut u8) -> c_int {
        Buffer::write(result, length.div_ceil(PAGE_SIZE))
    }
    fn getdomainname(name: *mut c_char, length: size_t) -> c_int { Buffer::write(name, length) }
    fn sethostname(name: *const c_char, length: size_t) -> c_int { Buffer::read(name, length) }
    fn getdents64[fd](fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t { Buffer::write(buffer, count) }
    fn sendfile64[output, input; giving output](output: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
        Buffer::result(offset)
    }
    fn memfd_create[; opening NEW](name: *const c_char, flags: c_uint) -> c_int { Buffer::string(name) }
}

/// What a call about capabilities is for.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct CapabilityHeader {
    version: u32,
    thread: pid_t,
}

/// Makes such a call with the kernel's number of the thread, which does not know `main` by that of the process.
///
/// # Safety
/// There is a header, or nothing.
unsafe fn about_capabilities(
    header: *mut CapabilityHeader,
    data: Buffer,
    call: impl Fn(*mut CapabilityHeader) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(told) = (unsafe { accesses::load(header) }) else {
        crate::errno::set(libc::EFAULT);
        return -1;
    };
    let mut known = Box::new(CapabilityHeader { thread: kernel_number(told.thread), ..told });
    let result = super::with_buffers(&[data], || call(&raw mut *known));
    // The kernel says which version it wants.
    // SAFETY: the caller's promise.
    unsafe { accesses::store(&CapabilityHeader { version: known.version, ..told }, header) };
    result
}

/// # Safety
/// As the C library's `capget`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn capget(header: *mut CapabilityHeader, data: *mut c_void) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        about_capabilities(header, Buffer::write(data, CAPABILITIES), |header| {
            crate::real!(capget: fn(*mut CapabilityHeader, *mut c_void) -> c_int)(header, data)
        })
    }
}

/// # Safety
/// As the C library's `capset`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn capset(header: *mut CapabilityHeader, data: *const c_void) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        about_capabilities(header, Buffer::read(data, CAPABILITIES), |header| {
            crate::real!(capset: fn(*mut CapabilityHeader, *const c_void) -> c_int)(header, data)
        })
    }
}

/// # Safety
/// As the C library's `nanosleep`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    let _pause = pause();
    at_point_if(true, || {
        super::with_buffers(&[Buffer::value(time), Buffer::result(left)], || {
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!(nanosleep: fn(*const timespec, *mut timespec) -> c_int)(time, left) }
        })
    })
}

/// # Safety
/// As the C library's `clock_nanosleep`, which returns its error.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let _pause = pause();
    let sleep = || {
        super::with_buffers_returning_error(&[Buffer::value(time), Buffer::result(left)], || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(clock_nanosleep: fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int)(
                    clock, flags, time, left,
                )
            }
        })
    };
    at_point(sleep, |error| *error == libc::EINTR)
}
