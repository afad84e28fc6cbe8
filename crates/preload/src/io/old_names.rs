//! Other names of functions of the C library, by which programs and libraries call them that were linked long ago.

use libc::{c_char, c_int, dev_t, mode_t};
use std::arch::naked_asm;

/// The versions of `struct stat` that the C library has on this kind of computer; both are the same.
const VERSIONS: std::ops::RangeInclusive<c_int> = 0..=1;

/// Defines the functions that got the version of `struct stat`, or of a device's number, before the arguments of those of today.
macro_rules! versioned {
    ($(fn $name:ident($($argument:ident: $type:ty),*) in $versions:expr => $call:ident($($passed:expr),*);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C-unwind" fn $name(version: c_int, $($argument: $type),*) -> c_int {
            if !$versions.contains(&version) {
                crate::errno::set(libc::EINVAL);
                return -1;
            }
            // SAFETY: forwards the caller's arguments.
            unsafe { libc::$call($($passed),*) }
        }
    )*};
}

versioned! {
    fn __xstat(path: *const c_char, result: *mut libc::stat) in VERSIONS => stat(path, result);
    fn __xstat64(path: *const c_char, result: *mut libc::stat64) in VERSIONS => stat64(path, result);
    fn __lxstat(path: *const c_char, result: *mut libc::stat) in VERSIONS => lstat(path, result);
    fn __lxstat64(path: *const c_char, result: *mut libc::stat64) in VERSIONS => lstat64(path, result);
    fn __fxstat(fd: c_int, result: *mut libc::stat) in VERSIONS => fstat(fd, result);
    fn __fxstat64(fd: c_int, result: *mut libc::stat64) in VERSIONS => fstat64(fd, result);
    fn __fxstatat(fd: c_int, path: *const c_char, result: *mut libc::stat, flags: c_int) in VERSIONS =>
        fstatat(fd, path, result, flags);
    fn __fxstatat64(fd: c_int, path: *const c_char, result: *mut libc::stat64, flags: c_int) in VERSIONS =>
        fstatat64(fd, path, result, flags);
    fn __xmknod(path: *const c_char, mode: mode_t, device: *const dev_t) in [0] => mknod(path, mode, *device);
    fn __xmknodat(fd: c_int, path: *const c_char, mode: mode_t, device: *const dev_t) in [0] => mknodat(fd, path, mode, *device);
}

/// Defines names of exported functions of this library.
macro_rules! names {
    ($($name:ident => $function:ident;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            naked_asm!(concat!("jmp ", stringify!($function), "@PLT"))
        }
    )*};
}

names! {
    __close => close;
    __connect => connect;
    __duplocale => duplocale;
    __dup2 => dup2;
    __fcntl => fcntl;
    __fork => fork;
    __freelocale => freelocale;
    __getpid => getpid;
    __iswctype => iswctype;
    __lseek => lseek;
    __nanosleep => nanosleep;
    __newlocale => newlocale;
    __open => open;
    __open64 => open64;
    __pipe => pipe;
    __poll => poll;
    __pread64 => pread64;
    __pwrite64 => pwrite64;
    __read => read;
    __sched_getparam => sched_getparam;
    __sched_getscheduler => sched_getscheduler;
    __sched_setscheduler => sched_setscheduler;
    __select => select;
    __send => send;
    __sigaction => sigaction;
    __sigsuspend => sigsuspend;
    __statfs => statfs;
    __towctrans => towctrans;
    __vfork => vfork;
    __vfscanf => vfscanf;
    __vsscanf => vsscanf;
    __wait => wait;
    __waitpid => waitpid;
    __write => write;
    __pthread_getspecific => pthread_getspecific;
    __pthread_key_create => pthread_key_create;
    __pthread_mutex_destroy => pthread_mutex_destroy;
    __pthread_mutex_init => pthread_mutex_init;
    __pthread_mutex_lock => pthread_mutex_lock;
    __pthread_mutex_trylock => pthread_mutex_trylock;
    __pthread_mutex_unlock => pthread_mutex_unlock;
    __pthread_once => pthread_once;
    __pthread_rwlock_destroy => pthread_rwlock_destroy;
    __pthread_rwlock_init => pthread_rwlock_init;
    __pthread_rwlock_rdlock => pthread_rwlock_rdlock;
    __pthread_rwlock_tryrdlock => pthread_rwlock_tryrdlock;
    __pthread_rwlock_trywrlock => pthread_rwlock_trywrlock;
    __pthread_rwlock_unlock => pthread_rwlock_unlock;
    __pthread_rwlock_wrlock => pthread_rwlock_wrlock;
    __pthread_setspecific => pthread_setspecific;
}
