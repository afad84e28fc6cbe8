//! Calls on paths and files that read a name or fill in a result.

use super::Buffer;
use super::channels::{NEW, opening};
use super::descriptors::Place;
use gondwana_sys::Argument;
use libc::{
    c_char, c_int, c_long, c_uint, c_ulong, c_void, dev_t, gid_t, mode_t, off_t, size_t, ssize_t, timespec,
    timeval, uid_t,
};

crate::guarded! {
    fn readlink(path: *const c_char, buffer: *mut c_char, count: size_t) -> ssize_t {
        Buffer::string(path), Buffer::write(buffer, count)
    }
    fn readlinkat[fd](fd: c_int, path: *const c_char, buffer: *mut c_char, count: size_t) -> ssize_t {
        Buffer::string(path), Buffer::write(buffer, count)
    }
    fn creat[; opening NEW](path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn access(path: *const c_char, mode: c_int) -> c_int { Buffer::string(path) }
    fn faccessat[fd](fd: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int { Buffer::string(path) }
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
    fn mkstemp[; opening NEW](template: *mut c_char) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkstemp64[; opening NEW](template: *mut c_char) -> c_int { Buffer::string(template), Buffer::result(template) }
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
    fn creat64[; opening NEW](path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn truncate64(path: *const c_char, length: off_t) -> c_int { Buffer::string(path) }
    fn eaccess(path: *const c_char, mode: c_int) -> c_int { Buffer::string(path) }
    fn euidaccess(path: *const c_char, mode: c_int) -> c_int { Buffer::string(path) }
    fn lchown(path: *const c_char, user: uid_t, group: gid_t) -> c_int { Buffer::string(path) }
    fn fchmodat[fd](fd: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int { Buffer::string(path) }
    fn fchownat[fd](fd: c_int, path: *const c_char, user: uid_t, group: gid_t, flags: c_int) -> c_int { Buffer::string(path) }
    fn mkfifoat[fd](fd: c_int, path: *const c_char, mode: mode_t) -> c_int { Buffer::string(path) }
    fn mknodat[fd](fd: c_int, path: *const c_char, mode: mode_t, device: dev_t) -> c_int { Buffer::string(path) }
    fn symlinkat[fd](from: *const c_char, fd: c_int, to: *const c_char) -> c_int { Buffer::string(from), Buffer::string(to) }
    fn linkat[one, two](one: c_int, from: *const c_char, two: c_int, to: *const c_char, flags: c_int) -> c_int {
        Buffer::string(from), Buffer::string(to)
    }
    fn renameat[one, two](one: c_int, from: *const c_char, two: c_int, to: *const c_char) -> c_int {
        Buffer::string(from), Buffer::string(to)
    }
    fn renameat2[one, two](one: c_int, from: *const c_char, two: c_int, to: *const c_char, flags: c_uint) -> c_int {
        Buffer::string(from), Buffer::string(to)
    }
    fn utime(path: *const c_char, times: *const libc::utimbuf) -> c_int { Buffer::string(path), Buffer::value(times) }
    fn utimes(path: *const c_char, times: *const timeval) -> c_int { Buffer::string(path), Buffer::read(times, 2 * size_of::<timeval>()) }
    fn lutimes(path: *const c_char, times: *const timeval) -> c_int { Buffer::string(path), Buffer::read(times, 2 * size_of::<timeval>()) }
    fn futimes[fd](fd: c_int, times: *const timeval) -> c_int { Buffer::read(times, 2 * size_of::<timeval>()) }
    fn utimensat[fd](fd: c_int, path: *const c_char, times: *const timespec, flags: c_int) -> c_int {
        Buffer::string(path), Buffer::read(times, 2 * size_of::<timespec>())
    }
    fn mkdtemp(template: *mut c_char) -> *mut c_char { Buffer::string(template), Buffer::result(template) }
    fn mkostemp(template: *mut c_char, flags: c_int) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkostemp64(template: *mut c_char, flags: c_int) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkstemps(template: *mut c_char, suffix: c_int) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkstemps64(template: *mut c_char, suffix: c_int) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn mkostemps64(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int { Buffer::string(template), Buffer::result(template) }
    fn fstatat64[fd](fd: c_int, path: *const c_char, result: *mut libc::stat64, flags: c_int) -> c_int {
        Buffer::string(path), Buffer::result(result)
    }
    fn statx[fd](fd: c_int, path: *const c_char, flags: c_int, mask: c_uint, result: *mut libc::statx) -> c_int {
        Buffer::string(path), Buffer::result(result)
    }
    fn statfs64(path: *const c_char, result: *mut libc::statfs64) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn fstatfs64[fd](fd: c_int, result: *mut libc::statfs64) -> c_int { Buffer::result(result) }
    fn statvfs(path: *const c_char, result: *mut libc::statvfs) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn statvfs64(path: *const c_char, result: *mut libc::statvfs64) -> c_int { Buffer::string(path), Buffer::result(result) }
    fn fstatvfs[fd](fd: c_int, result: *mut libc::statvfs) -> c_int { Buffer::result(result) }
    fn fstatvfs64[fd](fd: c_int, result: *mut libc::statvfs64) -> c_int { Buffer::result(result) }
    fn pathconf(path: *const c_char, name: c_int) -> c_long { Buffer::string(path) }
    fn fpathconf[fd](fd: c_int, name: c_int) -> c_long {}
    fn umount(path: *const c_char) -> c_int { Buffer::string(path) }
    fn umount2(path: *const c_char, flags: c_int) -> c_int { Buffer::string(path) }
    fn mount(source: *const c_char, target: *const c_char, kind: *const c_char, flags: c_ulong, data: *const c_void) -> c_int {
        Buffer::string(source), Buffer::string(target), Buffer::string(kind)
    }
    fn getxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t {
        Buffer::string(path), Buffer::string(name), Buffer::write(value, size)
    }
    fn lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t {
        Buffer::string(path), Buffer::string(name), Buffer::write(value, size)
    }
    fn fgetxattr[fd](fd: c_int, name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t {
        Buffer::string(name), Buffer::write(value, size)
    }
    fn setxattr(path: *const c_char, name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int {
        Buffer::string(path), Buffer::string(name), Buffer::read(value, size)
    }
    fn lsetxattr(path: *const c_char, name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int {
        Buffer::string(path), Buffer::string(name), Buffer::read(value, size)
    }
    fn fsetxattr[fd](fd: c_int, name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int {
        Buffer::string(name), Buffer::read(value, size)
    }
    fn listxattr(path: *const c_char, list: *mut c_char, size: size_t) -> ssize_t { Buffer::string(path), Buffer::write(list, size) }
    fn llistxattr(path: *const c_char, list: *mut c_char, size: size_t) -> ssize_t { Buffer::string(path), Buffer::write(list, size) }
    fn flistxattr[fd](fd: c_int, list: *mut c_char, size: size_t) -> ssize_t { Buffer::write(list, size) }
    fn removexattr(path: *const c_char, name: *const c_char) -> c_int { Buffer::string(path), Buffer::string(name) }
    fn lremovexattr(path: *const c_char, name: *const c_char) -> c_int { Buffer::string(path), Buffer::string(name) }
    fn fremovexattr[fd](fd: c_int, name: *const c_char) -> c_int { Buffer::string(name) }
}

/// Defines the variadic `open` family, whose last argument is there only for some flags.
macro_rules! opening {
    ($($name:ident($($argument:ident: $type:ty)?);)*) => {$(
        /// # Safety
        /// As the C library's function of this name. An absent variadic argument has an arbitrary value, which the
        /// kernel ignores without `O_CREAT`.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(
            $($argument: $type,)?
            path: *const c_char,
            flags: c_int,
            mode: mode_t,
        ) -> c_int {
            opening(NEW, || crate::pthread::cancel::at_point_if(true, || {
                match crate::placed!($name [$($argument)?]) {
                    Place::Here => {}
                    Place::There(there) => {
                        let words = [$($argument.word(),)? path.word(), flags.word(), mode.word()];
                        return there.call(stringify!($name), &words, &[Buffer::string(path)]);
                    }
                    Place::Nowhere => return -1,
                }
                super::with_buffers(&[Buffer::string(path)], || {
                    // SAFETY: forwards the caller's arguments.
                    unsafe {
                        crate::real!($name: fn($($type,)? *const c_char, c_int, mode_t) -> c_int)(
                            $($argument,)? path, flags, mode,
                        )
                    }
                })
            }))
        }
    )*};
}

opening! {
    open();
    open64();
    openat(folder: c_int);
    openat64(folder: c_int);
}
