//! Calls that only check whether their descriptor is this node's, and calls that open or close numbers of the
//! program's choice.

use super::standard::is_standard;
use super::status::forget_kind;
use super::stops::{self, Numbers, other_owner};
use super::{Place, borrow, events, extend, is_free, place, refuse, reopened};
use crate::io::channels::{NEW, giving};
use crate::io::record_locks::closing;
use crate::io::{Buffer, with_buffers_returning_error};
use gondwana_sys::Argument;
use libc::{
    c_char, c_int, c_uint, clockid_t, gid_t, loff_t, mode_t, off_t, pid_t, size_t, ssize_t, timespec, uid_t,
};

crate::guarded! {
    fn dup[fd; opening fd](fd: c_int) -> c_int {}
    fn socket[; opening NEW](domain: c_int, kind: c_int, protocol: c_int) -> c_int {}
    fn epoll_create[; opening NEW](size: c_int) -> c_int {}
    fn epoll_create1[; opening NEW](flags: c_int) -> c_int {}
    fn eventfd[; opening NEW](value: c_uint, flags: c_int) -> c_int {}
    fn timerfd_create[; opening NEW](clock: clockid_t, flags: c_int) -> c_int {}
    fn inotify_init[; opening NEW]() -> c_int {}
    fn inotify_init1[; opening NEW](flags: c_int) -> c_int {}
    fn posix_openpt[; opening NEW](flags: c_int) -> c_int {}
    fn lseek[fd](fd: c_int, offset: off_t, from: c_int) -> off_t {}
    fn lseek64[fd](fd: c_int, offset: off_t, from: c_int) -> off_t {}
    fn fsync[fd](fd: c_int) -> c_int {}
    fn fdatasync[fd](fd: c_int) -> c_int {}
    fn syncfs[fd](fd: c_int) -> c_int {}
    fn ftruncate[fd](fd: c_int, length: off_t) -> c_int {}
    fn ftruncate64[fd](fd: c_int, length: off_t) -> c_int {}
    fn fallocate[fd](fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {}
    fn fallocate64[fd](fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {}
    fn flock[fd; locking fd](fd: c_int, operation: c_int) -> c_int {}
    fn fchmod[fd](fd: c_int, mode: mode_t) -> c_int {}
    fn fchown[fd](fd: c_int, user: uid_t, group: gid_t) -> c_int {}
    fn futimens[fd](fd: c_int, times: *const timespec) -> c_int { Buffer::read(times, 2 * size_of::<timespec>()) }
    fn listen[fd](fd: c_int, most: c_int) -> c_int {}
    fn shutdown[fd; giving fd](fd: c_int, how: c_int) -> c_int {}
    fn splice[input, output; exchanging output](input: c_int, from: *mut loff_t, output: c_int, to: *mut loff_t, length: size_t,
        flags: c_uint) -> ssize_t { Buffer::result(from), Buffer::result(to) }
    fn tee[input, output; exchanging output](input: c_int, output: c_int, length: size_t, flags: c_uint) -> ssize_t {}
    fn readahead[fd](fd: c_int, offset: off_t, count: size_t) -> ssize_t {}
    fn sync_file_range[fd](fd: c_int, offset: off_t, length: off_t, flags: c_uint) -> c_int {}
    fn copy_file_range[input, output](input: c_int, from: *mut loff_t, output: c_int, to: *mut loff_t,
        length: size_t, flags: c_uint) -> ssize_t { Buffer::result(from), Buffer::result(to) }
    fn eventfd_read[fd; taking fd](fd: c_int, value: *mut u64) -> c_int { Buffer::result(value) }
    fn eventfd_write[fd; giving fd](fd: c_int, value: u64) -> c_int {}
    fn inotify_add_watch[fd](fd: c_int, path: *const c_char, mask: u32) -> c_int { Buffer::string(path) }
    fn inotify_rm_watch[fd](fd: c_int, watch: c_int) -> c_int {}
    fn timerfd_settime[fd; giving fd](fd: c_int, flags: c_int, new: *const libc::itimerspec, old: *mut libc::itimerspec) -> c_int {
        Buffer::value(new), Buffer::result(old)
    }
    fn timerfd_gettime[fd](fd: c_int, result: *mut libc::itimerspec) -> c_int { Buffer::result(result) }
    fn tcgetattr[fd](fd: c_int, result: *mut libc::termios) -> c_int { Buffer::result(result) }
    fn tcflush[fd](fd: c_int, what: c_int) -> c_int {}
    fn tcflow[fd](fd: c_int, what: c_int) -> c_int {}
    fn tcdrain[fd](fd: c_int) -> c_int {}
    fn tcsendbreak[fd](fd: c_int, duration: c_int) -> c_int {}
    fn tcgetpgrp[fd](fd: c_int) -> pid_t {}
    fn tcsetpgrp[fd](fd: c_int, group: pid_t) -> c_int {}
    fn tcgetsid[fd](fd: c_int) -> pid_t {}
    fn tcsetattr[fd](fd: c_int, when: c_int, new: *const libc::termios) -> c_int { Buffer::value(new) }
}

/// Defines functions that return their error.
macro_rules! returning_error {
    ($(fn $name:ident[$fd:ident]($($argument:ident: $type:ty),*) { $($buffer:expr),* })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let buffers = [$($buffer),*];
            match place(&[$fd], stringify!($name)) {
                Place::Here => with_buffers_returning_error(&buffers, || {
                    // SAFETY: forwards the caller's arguments.
                    unsafe { crate::real!($name: fn($($type),*) -> c_int)($($argument),*) }
                }),
                Place::There(there) => there.call(stringify!($name), &[$($argument.word()),*], &buffers),
                Place::Nowhere => libc::EBADF,
            }
        }
    )*};
}

returning_error! {
    fn posix_fadvise[fd](fd: c_int, offset: off_t, length: off_t, advice: c_int) {}
    fn posix_fadvise64[fd](fd: c_int, offset: off_t, length: off_t, advice: c_int) {}
    fn posix_fallocate[fd](fd: c_int, offset: off_t, length: off_t) {}
    fn posix_fallocate64[fd](fd: c_int, offset: off_t, length: off_t) {}
    fn ttyname_r[fd](fd: c_int, name: *mut c_char, size: size_t) { Buffer::write(name, size) }
}

/// # Safety
/// As the C library's `isatty`, which fails with 0.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn isatty(fd: c_int) -> c_int {
    match place(&[fd], "isatty") {
        // SAFETY: forwards the caller's argument.
        Place::Here => unsafe { crate::real!(isatty: fn(c_int) -> c_int)(fd) },
        Place::There(there) => there.call("isatty", &[fd.into()], &[]),
        Place::Nowhere => 0,
    }
}

/// # Safety
/// As the C library's `close`, but that no thread is cancelled here: the runtime's own files are closed by this function, too.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(fd: c_int) -> c_int {
    if stops::is_out_of_reach(fd) {
        crate::errno::set(libc::EBADF);
        return -1;
    }
    if reopened::give_up(fd) {
        return 0;
    }
    giving(fd, || match place(&[fd], "close") {
        Place::Here => closing(fd, || close_here(fd)),
        Place::There(there) => there.call("close", &[fd.into()], &[]),
        Place::Nowhere => -1,
    })
}

fn close_here(fd: c_int) -> c_int {
    events::forget(fd);
    forget_kind(fd);
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
    borrow::close_with_copies(fd, || unsafe { crate::real!(close: fn(c_int) -> c_int)(fd) })
}

/// # Safety
/// As the C library's `dup2`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    duplicate("dup2", old, new, 0, || unsafe { crate::real!(dup2: fn(c_int, c_int) -> c_int)(old, new) })
}

/// # Safety
/// As the C library's `dup3`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    duplicate("dup3", old, new, flags, || unsafe {
        crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(old, new, flags)
    })
}

/// Copies a descriptor to the number that the program has chosen. That may be any, unless another node has
/// something open there.
fn duplicate(name: &str, old: c_int, new: c_int, flags: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let place = place(&[old], name);
    extend::claim(new, &place);
    match place {
        Place::Here => {}
        // What is open there decides whether the number is free, which is the other node's own or everybody's.
        Place::There(there)
            if is_standard(new) || other_owner(new).is_some_and(|(_, owner)| owner == there.owner) =>
        {
            return there.call(name, &[old.into(), new.into(), flags.into()], &[]);
        }
        Place::There(there) => {
            refuse(there.node, there.owner, old, name);
            crate::errno::set(libc::EBADF);
            return -1;
        }
        Place::Nowhere => return -1,
    }
    if !is_free(new, name) {
        return -1;
    }
    let result = giving(new, || closing(new, call));
    if result >= 0 {
        stops::taken(new);
        borrow::recall(new);
    }
    result
}
