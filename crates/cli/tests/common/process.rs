//! Processes that a test watches.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A handle on a process, child or not.
pub(crate) struct Process {
    /// Its number, for messages.
    pub pid: u32,
    fd: OwnedFd,
}

impl Process {
    /// The process with this number, unless it has ended and been waited for.
    pub(crate) fn open(pid: u32) -> Option<Self> {
        // SAFETY: pidfd_open touches no memory.
        let fd = unsafe { gondwana_sys::syscall!(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: the kernel has just given us this descriptor.
        (fd >= 0).then(|| Self { pid, fd: unsafe { OwnedFd::from_raw_fd(fd.try_into().unwrap()) } })
    }

    /// Waits for its end; false if that takes longer than `limit`.
    pub(crate) fn ends_within(&self, limit: Duration) -> bool {
        let mut fd = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one pollfd.
        unsafe { libc::poll(&raw mut fd, 1, limit.as_millis().try_into().unwrap()) == 1 }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: no memory is passed.
        let result = unsafe {
            gondwana_sys::syscall!(
                libc::SYS_pidfd_send_signal,
                self.fd.as_raw_fd(),
                signal,
                std::ptr::null::<u8>(),
                0
            )
        };
        assert_eq!(result, 0, "signal {signal} to {}: {}", self.pid, std::io::Error::last_os_error());
    }

    /// A copy of one of its file descriptors.
    pub(crate) fn descriptor(&self, number: i32) -> Option<OwnedFd> {
        // SAFETY: pidfd_getfd touches no memory.
        let fd = unsafe { gondwana_sys::syscall!(libc::SYS_pidfd_getfd, self.fd.as_raw_fd(), number, 0) };
        // SAFETY: the kernel has just given us this descriptor.
        (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd.try_into().unwrap()) })
    }
}
