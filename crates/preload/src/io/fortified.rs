//! Functions that compilers put in place of others with `_FORTIFY_SOURCE`, as distributions build all of their programs.
//!
//! They get the size of the object behind a pointer, and end the program if the call could write behind it. The C library's own make the
//! system call themselves, on descriptors and memory that this node may not have.

use libc::{
    c_char, c_int, c_void, gid_t, mqd_t, nfds_t, off_t, pollfd, sigset_t, size_t, sockaddr, socklen_t,
    ssize_t, timespec,
};

/// Defines fortified functions: what must hold, and the call of this library's function behind it.
macro_rules! fortified {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty = $fits:expr => $call:ident($($passed:ident),*);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            if !$fits {
                // SAFETY: ends the program.
                unsafe { crate::real!(__chk_fail: fn())() };
            }
            // SAFETY: forwards the caller's arguments.
            unsafe { libc::$call($($passed),*) }
        }
    )*};
}

/// True if so many elements fit an object of so many bytes.
fn fit<T>(count: usize, room: size_t) -> bool {
    count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= room)
}

fortified! {
    fn __read_chk(fd: c_int, memory: *mut c_void, count: size_t, room: size_t) -> ssize_t =
        count <= room => read(fd, memory, count);
    fn __pread_chk(fd: c_int, memory: *mut c_void, count: size_t, offset: off_t, room: size_t) -> ssize_t =
        count <= room => pread(fd, memory, count, offset);
    fn __pread64_chk(fd: c_int, memory: *mut c_void, count: size_t, offset: off_t, room: size_t) -> ssize_t =
        count <= room => pread64(fd, memory, count, offset);
    fn __recv_chk(fd: c_int, memory: *mut c_void, count: size_t, room: size_t, flags: c_int) -> ssize_t =
        count <= room => recv(fd, memory, count, flags);
    fn __recvfrom_chk(
        fd: c_int, memory: *mut c_void, count: size_t, room: size_t, flags: c_int, address: *mut sockaddr, length: *mut socklen_t,
    ) -> ssize_t = count <= room => recvfrom(fd, memory, count, flags, address, length);
    fn __poll_chk(set: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int =
        fit::<pollfd>(gondwana_page::to_usize(count), room) => poll(set, count, timeout);
    fn __ppoll_chk(set: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t, room: size_t) -> c_int =
        fit::<pollfd>(gondwana_page::to_usize(count), room) => ppoll(set, count, timeout, mask);
    fn __readlink_chk(path: *const c_char, buffer: *mut c_char, count: size_t, room: size_t) -> ssize_t =
        count <= room => readlink(path, buffer, count);
    fn __readlinkat_chk(fd: c_int, path: *const c_char, buffer: *mut c_char, count: size_t, room: size_t) -> ssize_t =
        count <= room => readlinkat(fd, path, buffer, count);
    fn __realpath_chk(path: *const c_char, result: *mut c_char, room: size_t) -> *mut c_char =
        crate::numbers::many(libc::PATH_MAX) <= room => realpath(path, result);
    fn __getcwd_chk(buffer: *mut c_char, size: size_t, room: size_t) -> *mut c_char = size <= room => getcwd(buffer, size);
    fn __gethostname_chk(name: *mut c_char, length: size_t, room: size_t) -> c_int = length <= room => gethostname(name, length);
    fn __getdomainname_chk(name: *mut c_char, length: size_t, room: size_t) -> c_int =
        length <= room => getdomainname(name, length);
    fn __getgroups_chk(count: c_int, groups: *mut gid_t, room: size_t) -> c_int =
        count < 0 || fit::<gid_t>(crate::numbers::many(count), room) => getgroups(count, groups);
    fn __ttyname_r_chk(fd: c_int, name: *mut c_char, size: size_t, room: size_t) -> c_int =
        size <= room => ttyname_r(fd, name, size);
}

/// True if an `open` with these flags needs no mode, which the fortified ones do not have.
fn has_no_mode(flags: c_int) -> bool {
    flags & libc::O_CREAT == 0 && flags & libc::O_TMPFILE != libc::O_TMPFILE
}

/// Defines the fortified `open` family. The C library's function tells what is wrong with flags that need a mode.
macro_rules! opening {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $call:ident;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name($($argument: $type,)* flags: c_int) -> $result {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                if has_no_mode(flags) {
                    libc::$call($($argument,)* flags)
                } else {
                    crate::real!($name: fn($($type,)* c_int) -> $result)($($argument,)* flags)
                }
            }
        }
    )*};
}

opening! {
    fn __open_2(path: *const c_char) -> c_int = open;
    fn __open64_2(path: *const c_char) -> c_int = open64;
    fn __openat_2(folder: c_int, path: *const c_char) -> c_int = openat;
    fn __openat64_2(folder: c_int, path: *const c_char) -> c_int = openat64;
    fn __mq_open_2(name: *const c_char) -> mqd_t = mq_open;
}
