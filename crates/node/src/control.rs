//! What a node process and the launcher say to each other while the program runs.

use crate::bank_requests::{BankAnswer, BankRequest, Reached};
use crate::boot::Monitoring;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

/// Longest datagram of the control channel, in bytes.
pub const MAX_REPORT: usize = 128 * 1024;

/// Most bytes of chunks of a recording that a datagram of the control channel carries: [`CHUNKS_MARK`] adds one.
pub const MAX_CHUNKS: usize = MAX_REPORT - 1;

/// What a datagram with chunks of a recording begins with; no JSON text does.
pub const CHUNKS_MARK: u8 = 0;

/// From a node to the launcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The node has joined the others and is about to run the program.
    Up,
    /// Totals since the start of the node.
    Progress {
        /// Faults taken.
        faults: u64,
        /// Bytes sent to other nodes.
        bytes: u64,
    },
    /// The node's counters: an object of named numbers, or of objects of them.
    Stats(serde_json::Value),
    /// The program is about to die of a signal.
    Crash {
        /// The thread of the program, 0 being the one that runs `main`.
        thread: u64,
        /// Number of the signal.
        signal: i32,
        /// The address that was touched, or 0 where the signal has none.
        address: u64,
        /// More, for people; may be empty.
        what: String,
    },
    /// The program asked for something that cannot work on several nodes. It goes on with an error code.
    Refused {
        /// A sentence that names it.
        what: String,
    },
    /// From who has started the process: the kernel has ended it for want of memory.
    Starved {
        /// A part of a sentence that says whose memory, and what to do.
        why: String,
    },
    /// The process cannot be a node, and ends.
    Failed {
        /// A sentence that says why.
        why: String,
    },
    /// The monitor has failed: nothing more is recorded of the node, which goes on.
    Unrecorded {
        /// Where and why, in a few words.
        why: String,
    },
    /// Counters of filters have reached their thresholds.
    Thresholds {
        /// First addresses of the units that were counted, and what their counters have reached.
        reached: Vec<(u64, u64)>,
        /// How many more there were at the same time.
        more: u64,
    },
    /// A counter has reached a threshold that a thread of another node wants to hear of: an [`Order::Reached`] for it.
    Reached {
        /// That node.
        node: u16,
        /// What has happened.
        reached: Reached,
    },
    /// A thread of the program asks something of the banks of all nodes: an [`Order::Banks`] is awaited.
    Bank(BankRequest),
    /// What has become of [`Order::Bank`] on this node.
    BankDone(BankAnswer),
    /// The node has told what its counters have counted.
    Counted,
    /// The program wants the run to be recorded in a file: an [`Order::Answer`] is awaited.
    Record {
        /// Where, as the launcher understands it.
        file: PathBuf,
    },
    /// The program wants the recording to end: an [`Order::Answer`] is awaited.
    StopRecording,
    /// The connection to another node has broken.
    Lost {
        /// The node that is no longer heard of.
        node: u16,
        /// Why.
        reason: String,
        /// Its whole computer is silent: no news of the node itself will come.
        silent: bool,
    },
    /// The node has waited for seconds for another one of its computer, which holds a page of it, and waits on. Nodes hold
    /// pages for moments, unless they are stopped.
    HeldUp {
        /// The node that holds the page.
        by: u16,
    },
    /// The program has called `exit` or returned from `main`: sent before any other node can learn of it.
    Exit {
        /// The status as the parent process of the program would see it, 0 to 255.
        status: i32,
    },
    /// From node 0 behind [`Report::Exit`]: the other nodes have written out everything, and nobody needs them any more.
    Closed,
}

/// What the launcher hears from a node.
#[derive(Clone, Debug, PartialEq)]
pub enum News<'a> {
    /// A report.
    Report(Report),
    /// Chunks of the recording, one behind the other.
    Chunks(&'a [u8]),
}

/// From the launcher to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Record from now on. A node that records already begins anew.
    Monitor(Monitoring),
    /// Write down what has not been written yet, and record no more. Filters that a recording has come with go.
    Unmonitor,
    /// Tell what the counters of filters have counted, and then [`Report::Counted`].
    Count,
    /// What has become of [`Report::Record`] or [`Report::StopRecording`]: nothing, or an error number and a sentence.
    Answer(Option<(i32, String)>),
    /// Do on the bank what a thread of any node has asked for, and then [`Report::BankDone`].
    Bank {
        /// The node that has asked.
        asker: u16,
        /// The number of what is new, a filter or a secondary counter; else 0.
        number: u8,
        /// What it has asked for.
        request: BankRequest,
    },
    /// What the banks have answered to [`Report::Bank`].
    Banks(BankAnswer),
    /// See [`Report::Reached`].
    Reached(Reached),
}

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

    /// Takes over an end, in a node [`Boot::control_fd`](crate::boot::Boot::control_fd).
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Sends one message ([`Report`] or [`Order`]). Waits while the other end is behind in reading.
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

    /// Receives what a node says, as [`Control::receive`] does. It is put into `buffer`, which may be used again: to give
    /// as much memory back for each message as the longest needs would take longer than to receive it.
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
            if length >= 0 {
                break length as usize;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ECONNRESET) => return Ok(false),
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

/// The parts of [`Report::Crash`], borrowed.
#[derive(Serialize)]
enum CrashReport<'a> {
    Crash { thread: u64, signal: i32, address: u64, what: &'a str },
}

/// Sends a [`Report::Crash`] without allocating and without locks, so that a signal handler may call it.
///
/// # Errors
/// Of the system; [`io::ErrorKind::WriteZero`] if `what` is longer than about 1,800 bytes.
pub fn send_crash(control_fd: RawFd, thread: u64, signal: i32, address: u64, what: &str) -> io::Result<()> {
    let mut buffer = [0u8; 2048];
    let mut rest = &mut buffer[..];
    let report = CrashReport::Crash { thread, signal, address, what };
    if serde_json::to_writer(&mut rest, &report).is_err() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let length = 2048 - rest.len();
    send(control_fd, &buffer[..length], 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_arrive_one_by_one_and_then_the_end() {
        let (launcher, node) = Control::pair().unwrap();
        let nothing = launcher.receive::<Report>(false).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        node.send(&Report::Up).unwrap();
        send_crash(node.as_raw_fd(), 3, libc::SIGSEGV, 16, "a \"wild\" pointer").unwrap();
        drop(node);
        assert_eq!(launcher.receive(true).unwrap(), Some(Report::Up));
        let crash = Report::Crash {
            thread: 3,
            signal: libc::SIGSEGV,
            address: 16,
            what: "a \"wild\" pointer".to_owned(),
        };
        assert_eq!(launcher.receive(true).unwrap(), Some(crash));
        assert_eq!(launcher.receive::<Report>(true).unwrap(), None);
    }

    #[test]
    fn a_crash_report_that_does_not_fit_is_refused() {
        let (_launcher, node) = Control::pair().unwrap();
        let error = send_crash(node.as_raw_fd(), 0, 6, 0, &"x".repeat(4096)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
