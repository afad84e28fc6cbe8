//! Calls that only check whether their descriptor is this node's, and calls that open or close numbers of the
//! program's choice.

use super::stops::{self, Numbers};
use super::{borrow, is_here};
use crate::io::Buffer;
use libc::{c_char, c_int, c_uint, gid_t, loff_t, mode_t, off_t, size_t, ssize_t, timespec, uid_t};

crate::guarded! {
    fn dup[fd](fd: c_int) -> c_int {}
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {}
    fn lseek[fd](fd: c_int, offset: off_t, from: c_int) -> off_t {}
    fn lseek64[fd](fd: c_int, offset: off_t, from: c_int) -> off_t {}
    fn fsync[fd](fd: c_int) -> c_int {}
    fn fdatasync[fd](fd: c_int) -> c_int {}
    fn syncfs[fd](fd: c_int) -> c_int {}
    fn ftruncate[fd](fd: c_int, length: off_t) -> c_int {}
    fn ftruncate64[fd](fd: c_int, length: off_t) -> c_int {}
    fn fallocate[fd](fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {}
    fn fallocate64[fd](fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {}
    fn flock[fd](fd: c_int, operation: c_int) -> c_int {}
    fn lockf[fd](fd: c_int, command: c_int, length: off_t) -> c_int {}
    fn lockf64[fd](fd: c_int, command: c_int, length: off_t) -> c_int {}
    fn fchmod[fd](fd: c_int, mode: mode_t) -> c_int {}
    fn fchown[fd](fd: c_int, user: uid_t, group: gid_t) -> c_int {}
    fn futimens[fd](fd: c_int, times: *const timespec) -> c_int { Buffer::read(times, 2 * size_of::<timespec>()) }
    fn listen[fd](fd: c_int, most: c_int) -> c_int {}
    fn shutdown[fd](fd: c_int, how: c_int) -> c_int {}
    fn splice[input, output](input: c_int, from: *mut loff_t, output: c_int, to: *mut loff_t, length: size_t,
        flags: c_uint) -> ssize_t { Buffer::result(from), Buffer::result(to) }
    fn copy_file_range[input, output](input: c_int, from: *mut loff_t, output: c_int, to: *mut loff_t,
        length: size_t, flags: c_uint) -> ssize_t { Buffer::result(from), Buffer::result(to) }
    fn eventfd_read[fd](fd: c_int, value: *mut u64) -> c_int { Buffer::result(value) }
    fn eventfd_write[fd](fd: c_int, value: u64) -> c_int {}
    fn inotify_add_watch[fd](fd: c_int, path: *const c_char, mask: u32) -> c_int { Buffer::string(path) }
    fn inotify_rm_watch[fd](fd: c_int, watch: c_int) -> c_int {}
    fn timerfd_settime[fd](fd: c_int, flags: c_int, new: *const libc::itimerspec, old: *mut libc::itimerspec) -> c_int {
        Buffer::value(new), Buffer::result(old)
    }
    fn timerfd_gettime[fd](fd: c_int, result: *mut libc::itimerspec) -> c_int { Buffer::result(result) }
    fn tcgetattr[fd](fd: c_int, result: *mut libc::termios) -> c_int { Buffer::result(result) }
    fn tcsetattr[fd](fd: c_int, when: c_int, new: *const libc::termios) -> c_int { Buffer::value(new) }
}

/// # Safety
/// As the C library's `isatty`, which fails with 0.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn isatty(fd: c_int) -> c_int {
    if !is_here(fd, "isatty") {
        return 0;
    }
    // SAFETY: forwards the caller's argument.
    unsafe { crate::real!(isatty: fn(c_int) -> c_int)(fd) }
}

/// # Safety
/// As the C library's `close`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn close(fd: c_int) -> c_int {
    if stops::is_out_of_reach(fd) {
        crate::errno::set(libc::EBADF);
        return -1;
    }
    if !is_here(fd, "close") {
        return -1;
    }
    if let Some(result) = borrow::close_borrowed(fd) {
        return result;
    }
    if let Some(numbers) = Numbers::get()
        && numbers.is_foreign(fd)
        && stops::is_open(fd)
    {
        numbers.close(fd);
        return 0;
    }
    // SAFETY: forwards the caller's argument.
    let result = unsafe { crate::real!(close: fn(c_int) -> c_int)(fd) };
    borrow::recall(fd);
    result
}

/// # Safety
/// As the C library's `dup2`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    duplicate("dup2", old, new, || unsafe { crate::real!(dup2: fn(c_int, c_int) -> c_int)(old, new) })
}

/// # Safety
/// As the C library's `dup3`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    duplicate("dup3", old, new, || unsafe {
        crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(old, new, flags)
    })
}

/// Copies a descriptor to the number that the program has chosen. That may be any, unless another node has
/// something open there.
fn duplicate(name: &str, old: c_int, new: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if !is_here(old, name) || !super::is_free(new, name) {
        return -1;
    }
    let result = call();
    if result >= 0 {
        stops::taken(new);
        borrow::recall(new);
    }
    result
}
