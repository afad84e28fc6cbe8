//! Descriptors that the program must not stumble over.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Programs know which numbers their own descriptors get, so ours begin well above.
const FIRST: i32 = 200;

/// Moves a descriptor to a number that the program will not get. If the limit on descriptors leaves no such number,
/// it stays.
#[must_use]
pub fn out_of_the_way(fd: OwnedFd) -> OwnedFd {
    if fd.as_raw_fd() >= FIRST {
        return fd;
    }
    // SAFETY: F_DUPFD_CLOEXEC touches no memory.
    let moved = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) };
    if moved < 0 {
        return fd;
    }
    // SAFETY: the kernel has just given us this descriptor.
    unsafe { OwnedFd::from_raw_fd(moved) }
}
