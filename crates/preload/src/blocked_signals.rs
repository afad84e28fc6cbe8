//! The signals that other threads block.

use crate::numbers::many;
use libc::{c_int, pid_t};
use std::io::Write;

/// What stands in a thread's status before the signals that it blocks, and how many digits those have.
const BLOCKED: &[u8] = b"\nSigBlk:\t";
const DIGITS: usize = 16;

/// True if a thread of this process blocks a signal. Allocates nothing, and needs little stack: a handler may have interrupted the C library's heap.
pub(crate) fn blocks(thread: pid_t, signal: c_int) -> bool {
    let (mut path, mut piece) = ([0_u8; 64], [0_u8; 512]);
    // The array is longer than the path, with a zero at its end.
    let _ = write!(&mut path[..63], "/proc/self/task/{thread}/status");
    let (mut at, mut blocked) = (0_usize, 0);
    // SAFETY: a string, and memory as long as told, all of it on a private stack.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0);
        loop {
            let length = gondwana_sys::syscall!(libc::SYS_pread64, file, piece.as_mut_ptr(), piece.len(), at);
            let piece = &piece[..usize::try_from(length).unwrap_or(0)];
            if let Some(found) = blocked_in(piece) {
                blocked = found;
                break;
            }
            // What is looked for may lie across the end of a piece.
            match piece.len().checked_sub(BLOCKED.len() + DIGITS) {
                Some(next @ 1..) => at += next,
                _ => break,
            }
        }
        gondwana_sys::syscall!(libc::SYS_close, file);
    }
    blocked >> (many(signal) - 1) & 1 == 1
}

/// The signals that a piece of a thread's status says are blocked.
fn blocked_in(piece: &[u8]) -> Option<u64> {
    let before = piece.windows(BLOCKED.len()).position(|window| window == BLOCKED)?;
    let digits = piece[before + BLOCKED.len()..].first_chunk::<DIGITS>()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_blocks_is_in_its_status() {
        let status =
            b"Name:\tx\nShdPnd:\t0000000000000200\nSigBlk:\t0000000000000a00\nSigIgn:\t0000000000000000\n";
        assert_eq!(blocked_in(status), Some(0xa00));
        assert_eq!(blocked_in(&status[..50]), None);
    }

    #[test]
    fn this_thread_blocks_what_it_has_blocked() {
        let this = gondwana_sys::thread();
        assert!(!blocks(this, libc::SIGUSR2));
        // SAFETY: a private set.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut set, libc::SIGUSR2);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        }
        assert!(blocks(this, libc::SIGUSR2) && !blocks(this, libc::SIGUSR1));
    }
}
