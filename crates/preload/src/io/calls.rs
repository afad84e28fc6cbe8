//! System calls with plain buffers.

use super::Buffer;
use libc::{
    c_char, c_int, c_uint, c_void, clockid_t, dev_t, epoll_event, gid_t, id_t, itimerval, mode_t, off_t,
    pid_t, rusage, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval, timezone, tms, uid_t, utsname,
};

/// Length of the address buffer that a call may fill, or 0.
fn length_at(length: *const socklen_t) -> usize {
    // SAFETY: the caller of the wrapped function passes null or a valid pointer.
    if length.is_null() { 0 } else { unsafe { *length as usize } }
}

crate::guarded! {
    fn recvfrom[fd](fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int, address: *mut sockaddr,
        length: *mut socklen_t) -> ssize_t {
        Buffer::write(buffer, count), Buffer::result(length), Buffer::write(address, length_at(length))
    }
    fn getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t { Buffer::write(buffer, count) }
    fn readlink(path: *const c_char, buffer: *mut c_char, count: size_t) -> ssize_t {
        Buffer::string(path), Buffer::write(buffer, count)
    }
    fn readlinkat[fd](fd: c_int, path: *const c_char, buffer: *mut c_char, count: size_t) -> ssize_t {
        Buffer::string(path), Buffer::write(buffer, count)
    }

    fn creat(path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn access(path: *const c_char, mode: c_int) -> c_int { Buffer::string(path) }
    fn faccessat[fd](fd: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int { Buffer::string(path) }
    fn chdir(path: *const c_char) -> c_int { Buffer::string(path) }
    fn mkdir(path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn mkdirat[fd](fd: c_int, path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn mkfifo(path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn mknod(path: *const c_char, mode: mode_t, device: dev_t) -> c_int { Buffer::string(path) }
    fn rmdir(path: *const c_char) -> c_int { Buffer::string(path) }
    fn unlink(path: *const c_char) -> c_int { Buffer::string(path) }
    fn unlinkat[fd](fd: c_int, path: *const c_char, flags: c_int) -> c_int { Buffer::string(path) }
    fn remove(path: *const c_char) -> c_int { Buffer::string(path) }
    fn rename(from: *const c_char, to: *const c_char) -> c_int { Buffer::string(from), Buffer::string(to) }
    fn link(from: *const c_char, to: *const c_char) -> c_int { Buffer::string(from), Buffer::string(to) }
    fn symlink(from: *const c_char, to: *const c_char) -> c_int { Buffer::string(from), Buffer::string(to) }
    fn chmod(path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn chown(path: *const c_char, user: uid_t, group: gid_t) -> c_int { Buffer::string(path) }
    fn truncate(path: *const c_char, length: off_t) -> c_int { Buffer::string(path) }
    fn mkstemp(template: *mut c_char) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkstemp64(template: *mut c_char) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn stat(path: *const c_char, result: *mut libc::stat) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn lstat(path: *const c_char, result: *mut libc::stat) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn fstat[fd](fd: c_int, result: *mut libc::stat) -> c_int { Buffer::result(result) }
    fn fstatat[fd](fd: c_int, path: *const c_char, result: *mut libc::stat, flags: c_int) -> c_int {
        Buffer::string(path), Buffer::result(result)
    }
    fn stat64(path: *const c_char, result: *mut libc::stat64) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn lstat64(path: *const c_char, result: *mut libc::stat64) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn fstat64[fd](fd: c_int, result: *mut libc::stat64) -> c_int { Buffer::result(result) }
    fn statfs(path: *const c_char, result: *mut libc::statfs) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn fstatfs[fd](fd: c_int, result: *mut libc::statfs) -> c_int { Buffer::result(result) }

    fn pipe(ends: *mut c_int) -> c_int { Buffer::write(ends, 8) }
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int { Buffer::write(ends, 8) }
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int { Buffer::write(ends, 8) }
    fn bind[fd](fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int { Buffer::read(address, length as usize) }
    fn connect[fd](fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
        Buffer::read(address, length as usize)
    }
    fn accept[fd](fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
        Buffer::result(length), Buffer::write(address, length_at(length))
    }
    fn accept4[fd](fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int {
        Buffer::result(length), Buffer::write(address, length_at(length))
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
    fn getsockopt[fd](fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int {
        Buffer::result(length), Buffer::write(value, length_at(length))
    }
    fn epoll_wait[fd](fd: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int {
        Buffer::write(events, most.max(0) as usize * size_of::<epoll_event>())
    }
    fn epoll_ctl[fd, other](fd: c_int, operation: c_int, other: c_int, event: *mut epoll_event) -> c_int { Buffer::value(event) }

    fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int { Buffer::value(time), Buffer::result(left) }
    fn getrusage(who: c_int, result: *mut rusage) -> c_int { Buffer::result(result) }
    fn getitimer(which: c_int, result: *mut itimerval) -> c_int { Buffer::result(result) }
    fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int {
        Buffer::value(new), Buffer::result(old)
    }
    fn settimeofday(time: *const timeval, zone: *const timezone) -> c_int { Buffer::value(time), Buffer::value(zone) }
    fn clock_getres(clock: clockid_t, result: *mut timespec) -> c_int { Buffer::result(result) }
    fn uname(result: *mut utsname) -> c_int { Buffer::result(result) }
    fn sysinfo(result: *mut libc::sysinfo) -> c_int { Buffer::result(result) }
    fn wait(status: *mut c_int) -> pid_t { Buffer::result(status) }
    fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t { Buffer::result(status) }
    fn waitid(kind: c_uint, id: id_t, info: *mut libc::siginfo_t, options: c_int) -> c_int { Buffer::result(info) }
    fn wait4(pid: pid_t, status: *mut c_int, options: c_int, usage: *mut rusage) -> pid_t {
        Buffer::result(status), Buffer::result(usage)
    }
    fn sched_setaffinity(pid: pid_t, size: size_t, set: *const c_void) -> c_int { Buffer::read(set, size) }
    fn sched_getaffinity(pid: pid_t, size: size_t, set: *mut c_void) -> c_int { Buffer::write(set, size) }
    fn gethostname(name: *mut c_char, length: size_t) -> c_int { Buffer::write(name, length) }
}

/// # Safety
/// As the C library's `times`, whose failure is a value that is not an error elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(result: *mut tms) -> libc::clock_t {
    let mut ticks = 0;
    super::with_buffers(&[Buffer::result(result)], || {
        // SAFETY: forwards the caller's argument.
        ticks = unsafe { crate::real!(times: fn(*mut tms) -> libc::clock_t)(result) };
        if ticks == -1 { -1 } else { 0 }
    });
    ticks
}

/// # Safety
/// As the C library's `clock_nanosleep`, which returns its error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    super::with_buffers_returning_error(&[Buffer::value(time), Buffer::result(left)], || {
        // SAFETY: forwards the caller's arguments.
        unsafe {
            crate::real!(clock_nanosleep: fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int)(
                clock, flags, time, left,
            )
        }
    })
}

/// Defines the variadic `open` family, whose last argument is there only for some flags.
macro_rules! opening {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the C library's function of this name. Reading an absent variadic argument yields what is in its
        /// register, which the kernel ignores without `O_CREAT`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type,)* path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            $(if !super::descriptors::is_here($argument, stringify!($name)) {
                return -1;
            })*
            super::with_buffers(&[Buffer::string(path)], || {
                // SAFETY: forwards the caller's arguments.
                unsafe {
                    crate::real!($name: fn($($type,)* *const c_char, c_int, mode_t) -> c_int)($($argument,)* path, flags, mode)
                }
            })
        }
    )*};
}

opening! {
    open();
    open64();
    openat(folder: c_int);
    openat64(folder: c_int);
}
