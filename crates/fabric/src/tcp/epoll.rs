//! Waiting for sockets.

use gondwana_page::to_usize;
use gondwana_sys::syscall;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

pub(super) use libc::{EPOLLET as EDGE, EPOLLIN as READABLE, EPOLLOUT as WRITABLE, EPOLLRDHUP as ENDED};

/// The most events of one call.
const BATCH: u8 = 64;

/// A set of descriptors of interest.
pub(super) struct Epoll(OwnedFd);

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the descriptor, if there is one, is new and nobody else's.
        check(fd).map(|fd| Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a descriptor for `interest`; events carry `token`.
    pub(super) fn add(&self, fd: impl AsFd, interest: i32, token: usize) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, interest, token)
    }

    /// Changes the interest in a descriptor. If it is ready for that now, a sleeping thread wakes.
    pub(super) fn change(&self, fd: impl AsFd, interest: i32, token: usize) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, interest, token)
    }

    /// Watches a descriptor no more.
    pub(super) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    fn control(&self, operation: i32, fd: impl AsFd, interest: i32, token: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.cast_unsigned(), u64: token as u64 };
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open and the event is live.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &raw mut event) }).map(|_| ())
    }

    /// The tokens of descriptors that are ready, with their events. Waits up to `timeout` (`None`: for ever) for the
    /// first, rounded up to milliseconds.
    pub(super) fn look(&self, timeout: Option<Duration>) -> impl Iterator<Item = (usize, i32)> + use<> {
        let millis = timeout.map_or(-1, |time| {
            let millis = time.as_nanos().div_ceil(1_000_000);
            i32::try_from(millis).unwrap_or(i32::MAX)
        });
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH as usize];
        let (set, room) = (self.0.as_raw_fd(), i32::from(BATCH));
        // By system call, as all that is done for each message (`calls.rs`).
        // SAFETY: the array has room for as many events as it says.
        let count = unsafe { syscall!(libc::SYS_epoll_wait, set, events.as_mut_ptr(), room, millis) };
        // An error can only be an interruption by a signal: nothing is ready.
        let count = usize::try_from(count).unwrap_or(0);
        events.into_iter().take(count).map(|event| (to_usize(event.u64), event.events.cast_signed()))
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor that is ready from when it is raised until it is cleared.
pub(super) struct Alarm(OwnedFd);

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        // SAFETY: the descriptor, if there is one, is new and nobody else's.
        check(fd).map(|fd| Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn raise(&self) {
        let one = 1_u64;
        // SAFETY: eight live bytes. It fails only if the alarm has been raised 2^64 times: then it is raised.
        unsafe { syscall!(libc::SYS_write, self.0.as_raw_fd(), &raw const one, size_of_val(&one)) };
    }

    pub(super) fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: room for eight bytes. It fails only if the alarm is not raised.
        unsafe { syscall!(libc::SYS_read, self.0.as_raw_fd(), &raw mut count, size_of_val(&count)) };
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The result of a system call.
fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
