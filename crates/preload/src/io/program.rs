//! Calls whose argument types depend on the operation.

use super::Buffer;
use crate::process::{identity, kill};
use gondwana_node::Node;
use libc::{c_char, c_int, c_long, c_ulong, c_void, ssize_t, timespec};

crate::guarded! {
    fn ioctl[fd](fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int { Buffer::write(argument, 64) }
    fn fcntl[fd](fd: c_int, command: c_int, argument: c_ulong) -> c_int { lock_of(command, argument) }
    fn fcntl64[fd](fd: c_int, command: c_int, argument: c_ulong) -> c_int { lock_of(command, argument) }
    fn prctl(operation: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int { named_by(operation, a) }
    fn vdprintf[fd](fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn __vdprintf_chk[fd](fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn sendfile[out, input](out: c_int, input: c_int, offset: *mut libc::off_t, count: usize) -> ssize_t {
        Buffer::result(offset)
    }
}

/// The buffer that an operation of `prctl` uses.
fn named_by(operation: c_int, argument: c_ulong) -> Buffer {
    match operation {
        libc::PR_SET_NAME => Buffer::string(argument as *const c_char),
        libc::PR_GET_NAME => Buffer::write(argument as *mut u8, 16),
        libc::PR_GET_PDEATHSIG => Buffer::result(argument as *mut c_int),
        _ => Buffer::read(std::ptr::null::<u8>(), 0),
    }
}

/// The lock description that some commands of `fcntl` take.
fn lock_of(command: c_int, argument: c_ulong) -> Buffer {
    let locking = matches!(command, libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW);
    Buffer::result(if locking { argument as *mut libc::flock } else { std::ptr::null_mut() })
}

/// `syscall`: futexes on shared memory become cluster-wide futexes; all other calls go to the kernel.
///
/// What the kernel takes of an argument of 32 bits.
fn low_half(word: usize) -> u32 {
    (word as u64 & 0xffff_ffff) as u32
}

/// # Safety
/// As the C library's `syscall`. Arguments that the caller did not pass have arbitrary values, which the kernel
/// ignores.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if let Some(node) = Node::current()
        && number == libc::SYS_futex
        && node.is_common(a)
    {
        // SAFETY: the fourth argument of a waiting futex call is null or a valid time.
        let time = unsafe { (d as *const timespec).as_ref() };
        return match crate::pthread::futex(
            node,
            a,
            low_half(b).cast_signed(),
            low_half(c),
            time,
            d,
            low_half(f),
        ) {
            Ok(result) => result,
            Err(error) => {
                crate::errno::set(error);
                -1
            }
        };
    }
    if Node::current().is_some()
        && let Some(result) = known(number, [a, b, c].map(|word| low_half(word).cast_signed()))
    {
        return result;
    }
    // SAFETY: forwards the caller's arguments.
    unsafe {
        crate::real!(syscall: fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long)(
            number, a, b, c, d, e, f,
        )
    }
}

/// Calls by their numbers that are about the program's process, by the functions that do the same.
fn known(number: c_long, [a, b, c]: [c_int; 3]) -> Option<c_long> {
    // SAFETY: none touches memory.
    let result = unsafe {
        match number {
            libc::SYS_getpid => identity::getpid(),
            libc::SYS_getppid => identity::getppid(),
            libc::SYS_gettid => identity::gettid(),
            libc::SYS_kill => kill::kill(a, b),
            libc::SYS_tgkill => kill::tgkill(a, b, c),
            _ => return None,
        }
    };
    Some(result.into())
}
