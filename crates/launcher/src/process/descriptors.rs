//! Numbers for the descriptors that a node inherits.
//!
//! A program may depend on the number that its first `open` gets, so ours are far above, at numbers that the launcher
//! does not use otherwise. They are the same on all nodes: the length of the environment, which contains one of them,
//! determines the address of the stack.

use gondwana_console::failure::Failure;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// How many descriptors a node inherits at most: control channel, description, fabric, frames, common file,
/// exchange.
pub const COUNT: usize = 6;

/// The first number, if the limit on open files allows it.
const PREFERRED: RawFd = 200;

/// The reserved numbers. While this exists, no other descriptor of this process gets one of them.
#[derive(Debug)]
pub struct Reserved {
    first: RawFd,
    _placeholders: Vec<OwnedFd>,
}

impl Reserved {
    /// Finds and reserves the numbers.
    pub fn new() -> io::Result<Self> {
        let (limit, count) = (open_files_limit(), RawFd::try_from(COUNT).map_err(io::Error::other)?);
        let mut first = PREFERRED;
        if first + 2 * count > limit {
            first = (limit - 2 * count).max(3);
        }
        while (first..first + count).any(is_open) {
            first += 1;
        }
        let null = std::fs::File::open("/dev/null")?;
        let mut placeholders = vec![];
        for number in first..first + count {
            // SAFETY: F_DUPFD_CLOEXEC touches no memory.
            let fd = unsafe { libc::fcntl(null.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the kernel has just given us this descriptor.
            placeholders.push(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        Ok(Self { first, _placeholders: placeholders })
    }

    /// All numbers, in the order in which a node's descriptors are given.
    pub fn all(&self) -> [RawFd; COUNT] {
        [self.control(), self.boot(), self.fabric(), self.frames(), self.common(), self.exchange()]
    }

    /// The number of the control channel.
    pub fn control(&self) -> RawFd {
        self.first
    }

    /// The number of the description.
    pub fn boot(&self) -> RawFd {
        self.first + 1
    }

    /// The number of the fabric's segment or listener.
    pub fn fabric(&self) -> RawFd {
        self.first + 2
    }

    /// The number of the file with the node's pages.
    pub fn frames(&self) -> RawFd {
        self.first + 3
    }

    /// The number of the file that the nodes of this computer have in common.
    pub fn common(&self) -> RawFd {
        self.first + 4
    }

    /// The number of the channel over which descriptors are handed over.
    pub fn exchange(&self) -> RawFd {
        self.first + 5
    }
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: F_GETFD touches no memory.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

fn open_files_limit() -> RawFd {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if result < 0 { 256 } else { RawFd::try_from(limit.rlim_cur).unwrap_or(RawFd::MAX) }
}

/// The standard input of nodes other than node 0.
pub fn null() -> Result<OwnedFd, Failure> {
    std::fs::File::open("/dev/null").map(OwnedFd::from).map_err(|error| Failure::system("/dev/null", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_numbers_are_high_and_apart() {
        let one = Reserved::new().unwrap();
        let two = Reserved::new().unwrap();
        assert!(one.control() >= PREFERRED);
        assert!(two.control() > one.exchange() || two.exchange() < one.control());
        assert!((one.control()..=one.exchange()).all(is_open));
    }
}
