//! The channel between the launcher and a node process.

use crate::messages::News;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Longest datagram of the control channel, in bytes.
pub const MAX_REPORT: usize = 128 * 1024;

/// Most bytes of chunks of a recording that a datagram of the control channel carries: [`CHUNKS_MARK`] adds one.
pub const MAX_CHUNKS: usize = MAX_REPORT - 1;

/// What a datagram with chunks of a recording begins with; no JSON text does.
pub const CHUNKS_MARK: u8 = 0;

/// One end of a control channel: a `SOCK_SEQPACKET` socket that carries one JSON message in each datagram, or chunks of a
/// recording.
#[derive(Debug)]
pub struct Control(OwnedFd);

impl Control {
    /// Makes the two ends: the launcher's and the node's. Both are close-on-exec.
    ///
    /// # Errors
    /// Of the system.
    pub fn pair() -> io::Result<(Self, Self)> {
        let mut fds = [0; 2];
        // SAFETY: the kernel writes two descriptors into an array of two.
        let result = unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us both descriptors.
        Ok(unsafe { (Self(OwnedFd::from_raw_fd(fds[0])), Self(OwnedFd::from_raw_fd(fds[1]))) })
    }

    /// Takes over an end, in a node [`Boot::control_fd`](crate::Boot::control_fd).
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Sends one message ([`Report`](crate::Report) or [`Order`](crate::Order)). Waits while the other end is behind in reading.
    ///
    /// # Errors
    /// Of the system; in particular if the other end is gone.
    pub fn send<M: Serialize>(&self, message: &M) -> io::Result<()> {
        send(self.0.as_raw_fd(), &serde_json::to_vec(message)?, 0)
    }

    /// Sends one message, unless the other end is so far behind in reading that this would have to wait: then an error of
    /// the kind [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub fn send_now<M: Serialize>(&self, message: &M) -> io::Result<()> {
        send(self.0.as_raw_fd(), &serde_json::to_vec(message)?, libc::MSG_DONTWAIT)
    }

    /// Receives one message, or `None` when the other end is gone. With `wait` false, an error of the kind
    /// [`io::ErrorKind::WouldBlock`] when there is no message yet.
    ///
    /// # Errors
    /// Of the system, or if the message is not one of ours.
    pub fn receive<M: for<'a> Deserialize<'a>>(&self, wait: bool) -> io::Result<Option<M>> {
        let mut datagram = vec![];
        if !self.receive_datagram(wait, &mut datagram)? {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&datagram)?))
    }

    /// Receives one message, or `None` when the other end is gone. An error of the kind [`io::ErrorKind::TimedOut`] if none
    /// comes in this time (`None`: waits for ever).
    ///
    /// # Errors
    /// As for [`Control::receive`].
    pub fn receive_within<M: for<'a> Deserialize<'a>>(
        &self,
        time: Option<Duration>,
    ) -> io::Result<Option<M>> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let millis = time.map_or(-1, |time| i32::try_from(time.as_millis()).unwrap_or(i32::MAX));
        // By system call: the function of that name is about the program's descriptors.
        // SAFETY: the kernel reads and writes one pollfd.
        match unsafe { gondwana_sys::syscall!(libc::SYS_poll, &raw mut poll, 1, millis) } {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.receive(true),
        }
    }

    /// Sends chunks of a recording to the launcher: a datagram of [`CHUNKS_MARK`] and at most [`MAX_CHUNKS`] bytes of whole
    /// chunks.
    ///
    /// # Errors
    /// As for [`Control::send`], and if it is no such datagram.
    pub fn send_chunks(&self, datagram: &[u8]) -> io::Result<()> {
        if datagram.first() != Some(&CHUNKS_MARK) || datagram.len() > MAX_REPORT {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        send(self.0.as_raw_fd(), datagram, 0)
    }

    /// Receives a message of a node, as [`Control::receive`] does, into `buffer`. The caller keeps the buffer: to allocate
    /// the memory of the longest message each time would take longer than to receive one.
    ///
    /// # Errors
    /// As for [`Control::receive`].
    pub fn receive_news<'a>(&self, wait: bool, buffer: &'a mut Vec<u8>) -> io::Result<Option<News<'a>>> {
        if !self.receive_datagram(wait, buffer)? {
            return Ok(None);
        }
        Ok(Some(match buffer.split_first() {
            Some((&CHUNKS_MARK, chunks)) => News::Chunks(chunks),
            _ => News::Report(serde_json::from_slice(buffer)?),
        }))
    }

    /// Puts the next datagram into a buffer; false when the other end is gone.
    fn receive_datagram(&self, wait: bool, buffer: &mut Vec<u8>) -> io::Result<bool> {
        buffer.clear();
        // Not cleared before: hardly any message needs more than a page of it.
        buffer.reserve(MAX_REPORT);
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        let length = loop {
            // By system call, as above. No address of the sender is asked for.
            // SAFETY: the kernel writes at most the buffer's capacity into the buffer.
            let length = unsafe {
                let (fd, nobody) = (self.0.as_raw_fd(), std::ptr::null_mut::<libc::c_void>());
                gondwana_sys::syscall!(
                    libc::SYS_recvfrom,
                    fd,
                    buffer.as_mut_ptr(),
                    MAX_REPORT,
                    flags,
                    nobody,
                    nobody
                )
            };
            if let Ok(length) = usize::try_from(length) {
                break length;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // The other end has left something unread. What it has sent before is there, and then its end.
                Some(libc::EINTR | libc::ECONNRESET) => {}
                _ => return Err(error),
            }
        };
        // SAFETY: the kernel has written that many bytes.
        unsafe { buffer.set_len(length) };
        Ok(length > 0)
    }
}

impl AsRawFd for Control {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl From<Control> for OwnedFd {
    fn from(control: Control) -> Self {
        control.0
    }
}

fn send(fd: RawFd, bytes: &[u8], flags: i32) -> io::Result<()> {
    loop {
        // SAFETY: the kernel reads the bytes given. MSG_NOSIGNAL: a launcher that is gone must not raise SIGPIPE
        // in the user's program.
        let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL | flags) };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}

/// The parts of [`Report::Crash`](crate::Report::Crash), borrowed.
#[derive(Serialize)]
enum CrashReport<'a> {
    Crash { thread: u64, signal: i32, address: u64, task: u32, what: &'a str },
}

/// Sends a [`Report::Crash`](crate::Report::Crash) without allocating and without locks, so that a signal handler may call it.
///
/// # Errors
/// Of the system; [`io::ErrorKind::WriteZero`] if `what` is longer than about 1,800 bytes.
pub fn send_crash(
    control_fd: RawFd,
    thread: u64,
    signal: i32,
    address: u64,
    task: u32,
    what: &str,
) -> io::Result<()> {
    let mut buffer = [0u8; 2048];
    let mut rest = &mut buffer[..];
    let report = CrashReport::Crash { thread, signal, address, task, what };
    if serde_json::to_writer(&mut rest, &report).is_err() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let length = 2048 - rest.len();
    send(control_fd, &buffer[..length], 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;

    #[test]
    fn reports_arrive_one_by_one_and_then_the_end() {
        let (launcher, node) = Control::pair().unwrap();
        let nothing = launcher.receive::<Report>(false).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        node.send(&Report::Up).unwrap();
        send_crash(node.as_raw_fd(), 3, libc::SIGSEGV, 16, 77, "a \"wild\" pointer").unwrap();
        drop(node);
        assert_eq!(launcher.receive(true).unwrap(), Some(Report::Up));
        let crash = Report::Crash {
            thread: 3,
            signal: libc::SIGSEGV,
            address: 16,
            task: 77,
            what: "a \"wild\" pointer".to_owned(),
        };
        assert_eq!(launcher.receive(true).unwrap(), Some(crash));
        assert_eq!(launcher.receive::<Report>(true).unwrap(), None);
    }

    #[test]
    fn an_end_with_unread_orders_loses_no_report() {
        let (launcher, node) = Control::pair().unwrap();
        node.send(&Report::Up).unwrap();
        node.send(&Report::Silent).unwrap();
        launcher.send(&Report::Up).unwrap();
        drop(node);
        assert_eq!(launcher.receive(false).unwrap(), Some(Report::Up));
        assert_eq!(launcher.receive(false).unwrap(), Some(Report::Silent));
        assert_eq!(launcher.receive::<Report>(false).unwrap(), None);
    }

    #[test]
    fn a_crash_report_that_does_not_fit_is_refused() {
        let (_launcher, node) = Control::pair().unwrap();
        let error = send_crash(node.as_raw_fd(), 0, 6, 0, 0, &"x".repeat(4096)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
