//! System calls by their numbers, as `syscall` makes them.
//!
//! Functions of this library that do the same under a name know on which node a descriptor is open, keep what is common to the
//! program's process, and have the memory present that the kernel accesses. The C library's names mean those here, as this library
//! is linked with them.
//!
//! Left out are calls whose numbers programs use to get something else than the C library's function of the name does: `setuid` and
//! its relatives for one thread, timers in the kernel's own form. Sets of signals and handlers have [forms](super::signals_by_number) of the kernel's.

use super::{Buffer, signals_by_number, with_buffers};
use crate::map::protection_keys::{pkey_alloc, pkey_mprotect};
use crate::numbers::low_half;
use crate::process::extended_state;
use crate::process::identity::kernel_number;
use crate::process::memory_barrier::membarrier;
use gondwana_sys::Argument;
use libc::{c_int, c_long, c_uint, c_void};

/// Bytes that a call about the scheduling of a thread reads or writes, at most.
const SCHEDULING: usize = 64;

/// What the kernel takes of an argument of a system call.
pub(super) trait Taken {
    fn of(word: usize) -> Self;
}

macro_rules! numbers {
    ($($number:ty: $taken:expr;)*) => {$(
        impl Taken for $number {
            fn of(word: usize) -> Self {
                $taken(word)
            }
        }
    )*};
}

numbers! {
    c_int: |word| low_half(word).cast_signed();
    c_uint: low_half;
    c_long: |word: usize| word.cast_signed() as c_long;
    u64: |word| word as u64;
    usize: |word| word;
    isize: usize::cast_signed;
}

impl<T> Taken for *const T {
    fn of(word: usize) -> Self {
        word as *const T
    }
}

impl<T> Taken for *mut T {
    fn of(word: usize) -> Self {
        word as *mut T
    }
}

/// Calls with the arguments of the function of the name: of their types, those behind a semicolon as they are.
macro_rules! calls {
    ($arguments:tt: $($number:ident: $name:ident($($word:ident),* $(; $($rest:expr),+)?);)*) => {
        /// Makes a system call by the function that does the same; `None` if there is none.
        ///
        /// # Safety
        /// As the system call's.
        pub(super) unsafe fn call(number: c_long, arguments: [usize; 6]) -> Option<c_long> {
            let $arguments = arguments;
            Some(match number {
                // SAFETY: the caller's promise.
                $(libc::$number => unsafe { libc::$name($(Taken::of($word)),* $(, $($rest),+)?) }.word(),)*
                // SAFETY: the caller's promise.
                _ => return unsafe { other(number, arguments) },
            })
        }
    };
}

/// Calls that have no function of the same arguments or the same result.
///
/// # Safety
/// As the system call's.
unsafe fn other(number: c_long, arguments: [usize; 6]) -> Option<c_long> {
    let [a, b, c, d, e, ..] = arguments;
    let thread = || kernel_number(Taken::of(a)).cast_unsigned() as usize;
    match number {
        // SAFETY: has no preconditions.
        libc::SYS_exit_group => unsafe { libc::_exit(Taken::of(a)) },
        // SAFETY: the caller's promise.
        libc::SYS_getcwd => Some(unsafe { present(&[Buffer::write(a as *mut u8, b)], number, [a, b, 0, 0]) }),
        libc::SYS_sched_getaffinity => {
            // SAFETY: the caller's promise.
            Some(unsafe { present(&[Buffer::write(c as *mut u8, b)], number, [thread(), b, c, 0]) })
        }
        libc::SYS_getdents64 => {
            // SAFETY: the caller's promise.
            let bytes = unsafe { super::calls::getdents64(Taken::of(a), b as *mut c_void, c) };
            Some(bytes.word())
        }
        libc::SYS_arch_prctl if <c_int as Taken>::of(a) == extended_state::REQUEST => {
            Some(extended_state::request(Taken::of(b)).word())
        }
        libc::SYS_membarrier => Some(membarrier(Taken::of(a), Taken::of(b), Taken::of(c)).word()),
        libc::SYS_brk => crate::map::program_break::by_number(a).map(Taken::of),
        // The child has memory of its own in any case.
        libc::SYS_fork | libc::SYS_clone if number == libc::SYS_fork || b == 0 => {
            // SAFETY: has no preconditions.
            Some(unsafe { super::forks::_Fork() }.word())
        }
        // SAFETY: the caller's promise.
        libc::SYS_vfork => Some(unsafe { super::forks::vfork() }.word()),
        // SAFETY: touches no memory.
        libc::SYS_tkill => Some(unsafe { libc::tgkill(libc::getpid(), Taken::of(a), Taken::of(b)) }.word()),
        libc::SYS_clock_nanosleep => {
            // SAFETY: the caller's promise.
            Some(with_error(unsafe {
                libc::clock_nanosleep(Taken::of(a), Taken::of(b), c as *const _, d as *mut _)
            }))
        }
        libc::SYS_fadvise64 => {
            // SAFETY: touches no memory.
            Some(with_error(unsafe {
                libc::posix_fadvise(Taken::of(a), Taken::of(b), Taken::of(c), Taken::of(d))
            }))
        }
        // SAFETY: the caller's promise.
        libc::SYS_capget => Some(unsafe { super::calls::capget(a as *mut _, b as *mut c_void) }.word()),
        // SAFETY: the caller's promise.
        libc::SYS_capset => Some(unsafe { super::calls::capset(a as *mut _, b as *const c_void) }.word()),
        libc::SYS_waitid if e == 0 => {
            // SAFETY: the caller's promise.
            Some(unsafe { libc::waitid(Taken::of(a), Taken::of(b), c as *mut _, Taken::of(d)) }.word())
        }
        libc::SYS_sched_getattr | libc::SYS_sched_setattr | libc::SYS_sched_rr_get_interval => {
            let buffers = [Buffer::write(b as *mut u8, SCHEDULING)];
            // SAFETY: the caller's promise.
            Some(unsafe { present(&buffers, number, [thread(), b, c, d]) })
        }
        libc::SYS_pkey_mprotect => {
            // SAFETY: the caller's promise.
            Some(unsafe { pkey_mprotect(a as *mut c_void, b, Taken::of(c), Taken::of(d)) }.word())
        }
        // SAFETY: has no preconditions.
        libc::SYS_pkey_alloc => Some(unsafe { pkey_alloc(Taken::of(a), Taken::of(b)) }.word()),
        // Their queues are memory of one process. Programs have another way, for systems without them.
        libc::SYS_io_setup | libc::SYS_io_uring_setup => Some(with_error(libc::ENOSYS)),
        // SAFETY: the caller's promise.
        _ => unsafe { signals_by_number::call(number, arguments) },
    }
}

/// The result of a function that gives an error number.
fn with_error(error: c_int) -> c_long {
    if error == 0 {
        return 0;
    }
    crate::errno::set(error);
    -1
}

/// Makes a call whose result is not that of the C library's function.
///
/// # Safety
/// As the system call's.
unsafe fn present(buffers: &[Buffer], number: c_long, [a, b, c, d]: [usize; 4]) -> c_long {
    // SAFETY: the caller's promise.
    with_buffers(buffers, || unsafe { gondwana_sys::syscall!(number, a, b, c, d) })
}

calls! {
    [a, b, c, d, e, f]:
    SYS_mmap: mmap(a, b, c, d, e, f);
    SYS_munmap: munmap(a, b);
    SYS_mprotect: mprotect(a, b, c);
    SYS_mremap: mremap(a, b, c, d; e);
    SYS_madvise: madvise(a, b, c);
    SYS_msync: msync(a, b, c);
    SYS_mincore: mincore(a, b, c);
    SYS_mlockall: mlockall(a);
    SYS_shmat: shmat(a, b, c);
    SYS_shmdt: shmdt(a);

    SYS_read: read(a, b, c);
    SYS_write: write(a, b, c);
    SYS_pread64: pread64(a, b, c, d);
    SYS_pwrite64: pwrite64(a, b, c, d);
    SYS_readv: readv(a, b, c);
    SYS_writev: writev(a, b, c);
    SYS_preadv: preadv(a, b, c, d);
    SYS_pwritev: pwritev(a, b, c, d);
    SYS_preadv2: preadv2(a, b, c, d, f);
    SYS_pwritev2: pwritev2(a, b, c, d, f);
    SYS_sendfile: sendfile(a, b, c, d);
    SYS_splice: splice(a, b, c, d, e, f);
    SYS_tee: tee(a, b, c, d);
    SYS_vmsplice: vmsplice(a, b, c, d);
    SYS_copy_file_range: copy_file_range(a, b, c, d, e, f);
    SYS_sendto: sendto(a, b, c, d, e, f);
    SYS_recvfrom: recvfrom(a, b, c, d, e, f);
    SYS_sendmsg: sendmsg(a, b, c);
    SYS_recvmsg: recvmsg(a, b, c);
    SYS_sendmmsg: sendmmsg(a, b, c, d);
    SYS_recvmmsg: recvmmsg(a, b, c, d, e);

    SYS_open: open(a, b; c);
    SYS_openat: openat(a, b, c; d);
    SYS_creat: creat(a, b);
    SYS_close: close(a);
    SYS_close_range: close_range(a, b, c);
    SYS_epoll_create: epoll_create(a);
    SYS_epoll_create1: epoll_create1(a);
    SYS_eventfd: eventfd(a; 0);
    SYS_eventfd2: eventfd(a, b);
    SYS_timerfd_create: timerfd_create(a, b);
    SYS_inotify_init: inotify_init();
    SYS_inotify_init1: inotify_init1(a);
    SYS_dup: dup(a);
    SYS_dup2: dup2(a, b);
    SYS_dup3: dup3(a, b, c);
    SYS_fcntl: fcntl(a, b; c);
    SYS_ioctl: ioctl(a, b; c);
    SYS_lseek: lseek(a, b, c);
    SYS_fsync: fsync(a);
    SYS_fdatasync: fdatasync(a);
    SYS_syncfs: syncfs(a);
    SYS_ftruncate: ftruncate(a, b);
    SYS_fallocate: fallocate(a, b, c, d);
    SYS_flock: flock(a, b);
    SYS_fchmod: fchmod(a, b);
    SYS_fchown: fchown(a, b, c);
    SYS_fstat: fstat(a, b);
    SYS_fstatfs: fstatfs(a, b);
    SYS_readahead: readahead(a, b, c);
    SYS_sync_file_range: sync_file_range(a, b, c, d);
    SYS_inotify_add_watch: inotify_add_watch(a, b, c);
    SYS_inotify_rm_watch: inotify_rm_watch(a, b);
    SYS_timerfd_settime: timerfd_settime(a, b, c, d);
    SYS_timerfd_gettime: timerfd_gettime(a, b);
    SYS_memfd_create: memfd_create(a, b);
    SYS_pipe: pipe(a);
    SYS_pipe2: pipe2(a, b);

    SYS_poll: poll(a, b, c);
    SYS_ppoll: ppoll(a, b, c, d);
    SYS_select: select(a, b, c, d, e);
    SYS_epoll_ctl: epoll_ctl(a, b, c, d);
    SYS_epoll_wait: epoll_wait(a, b, c, d);
    SYS_epoll_pwait: epoll_pwait(a, b, c, d, e);
    SYS_epoll_pwait2: epoll_pwait2(a, b, c, d, e);

    SYS_socket: socket(a, b, c);
    SYS_bind: bind(a, b, c);
    SYS_listen: listen(a, b);
    SYS_accept: accept(a, b, c);
    SYS_accept4: accept4(a, b, c, d);
    SYS_connect: connect(a, b, c);
    SYS_shutdown: shutdown(a, b);
    SYS_getsockname: getsockname(a, b, c);
    SYS_getpeername: getpeername(a, b, c);
    SYS_getsockopt: getsockopt(a, b, c, d, e);
    SYS_setsockopt: setsockopt(a, b, c, d, e);
    SYS_socketpair: socketpair(a, b, c, d);

    SYS_stat: stat(a, b);
    SYS_lstat: lstat(a, b);
    SYS_newfstatat: fstatat(a, b, c, d);
    SYS_statx: statx(a, b, c, d, e);
    SYS_statfs: statfs(a, b);
    SYS_access: access(a, b);
    SYS_faccessat: faccessat(a, b, c; 0);
    SYS_truncate: truncate(a, b);
    SYS_rename: rename(a, b);
    SYS_renameat: renameat(a, b, c, d);
    SYS_renameat2: renameat2(a, b, c, d, e);
    SYS_mkdir: mkdir(a, b);
    SYS_mkdirat: mkdirat(a, b, c);
    SYS_rmdir: rmdir(a);
    SYS_link: link(a, b);
    SYS_linkat: linkat(a, b, c, d, e);
    SYS_unlink: unlink(a);
    SYS_unlinkat: unlinkat(a, b, c);
    SYS_symlink: symlink(a, b);
    SYS_symlinkat: symlinkat(a, b, c);
    SYS_readlink: readlink(a, b, c);
    SYS_readlinkat: readlinkat(a, b, c, d);
    SYS_chmod: chmod(a, b);
    SYS_fchmodat: fchmodat(a, b, c; 0);
    SYS_chown: chown(a, b, c);
    SYS_lchown: lchown(a, b, c);
    SYS_fchownat: fchownat(a, b, c, d, e);
    SYS_mknod: mknod(a, b, c);
    SYS_mknodat: mknodat(a, b, c, d);
    SYS_utime: utime(a, b);
    SYS_utimes: utimes(a, b);
    SYS_utimensat: utimensat(a, b, c, d);
    SYS_chdir: chdir(a);
    SYS_fchdir: fchdir(a);
    SYS_getxattr: getxattr(a, b, c, d);
    SYS_lgetxattr: lgetxattr(a, b, c, d);
    SYS_fgetxattr: fgetxattr(a, b, c, d);
    SYS_setxattr: setxattr(a, b, c, d, e);
    SYS_lsetxattr: lsetxattr(a, b, c, d, e);
    SYS_fsetxattr: fsetxattr(a, b, c, d, e);
    SYS_listxattr: listxattr(a, b, c);
    SYS_llistxattr: llistxattr(a, b, c);
    SYS_flistxattr: flistxattr(a, b, c);
    SYS_removexattr: removexattr(a, b);
    SYS_lremovexattr: lremovexattr(a, b);
    SYS_fremovexattr: fremovexattr(a, b);

    SYS_execve: execve(a, b, c);
    SYS_wait4: wait4(a, b, c, d);
    SYS_getpid: getpid();
    SYS_getppid: getppid();
    SYS_gettid: gettid();
    SYS_kill: kill(a, b);
    SYS_tgkill: tgkill(a, b, c);
    SYS_pause: pause();
    SYS_sigaltstack: sigaltstack(a, b);
    SYS_umask: umask(a);
    SYS_alarm: alarm(a);
    SYS_getitimer: getitimer(a, b);
    SYS_setitimer: setitimer(a, b, c);
    SYS_getrlimit: getrlimit(a, b);
    SYS_setrlimit: setrlimit(a, b);
    SYS_prlimit64: prlimit64(a, b, c, d);
    SYS_getrusage: getrusage(a, b);
    SYS_times: times(a);
    SYS_getgroups: getgroups(a, b);
    SYS_getresuid: getresuid(a, b, c);
    SYS_getresgid: getresgid(a, b, c);
    SYS_setpriority: setpriority(a, b, c);
    SYS_sched_yield: sched_yield();
    SYS_sched_setaffinity: sched_setaffinity(a, b, c);
    SYS_sched_setscheduler: sched_setscheduler(a, b, c);
    SYS_sched_getscheduler: sched_getscheduler(a);
    SYS_sched_setparam: sched_setparam(a, b);
    SYS_sched_getparam: sched_getparam(a, b);
    SYS_prctl: prctl(a; b, c, d, e);
    SYS_uname: uname(a);
    SYS_sysinfo: sysinfo(a);
    SYS_getrandom: getrandom(a, b, c);
    SYS_nanosleep: nanosleep(a, b);
    SYS_gettimeofday: gettimeofday(a, b);
    SYS_time: time(a);
    SYS_clock_gettime: clock_gettime(a, b);
    SYS_clock_getres: clock_getres(a, b);
    SYS_semop: semop(a, b, c);
    SYS_msgsnd: msgsnd(a, b, c, d);
    SYS_msgrcv: msgrcv(a, b, c, d, e);
}
