//! The contract between the launcher and a node process: what a node is told at its start, and the messages on
//! the control channel afterwards.
//!
//! The description travels in a memfd, so that neither the command line nor the environment of the user's program
//! ever shows it. Only the number of that memfd is in the environment, and the node takes it out again.

use crate::placement::{Homes, ThreadGroup};
use gondwana_monitor::FilterText;
use gondwana_rset::ThreadPolicy;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

/// Name of the environment variable that holds the number of the memfd with the [`Boot`].
pub const BOOT_VARIABLE: &str = "GONDWANA_BOOT";

/// The version that launcher and node must have in common.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Longest datagram of the control channel, in bytes.
pub const MAX_REPORT: usize = 128 * 1024;

/// Longest chunk of a recording that the control channel carries, in bytes: [`Control::send_chunk`] adds one.
pub const MAX_CHUNK: usize = MAX_REPORT - 1;

/// What a datagram with a chunk of a recording begins with; no JSON text does.
const CHUNK_MARK: u8 = 0;

/// Everything a node process is told when it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Version of the launcher, see [`VERSION`].
    pub version: String,
    /// Identifies the run; the same on all nodes.
    pub run: u64,
    /// Number of this node.
    pub node: u16,
    /// How many nodes the run has.
    pub nodes: u16,
    /// How many processors this node may use.
    pub processors: u16,
    /// How the nodes talk to each other.
    pub fabric: FabricBoot,
    /// Which coherence protocol family runs.
    pub consistency: Consistency,
    /// Whether the launcher has chosen it, from the code of the program: libraries that come later must not call that
    /// into question.
    pub chosen: bool,
    /// Why that consistency was chosen, for people.
    pub reason: String,
    /// How faults are raised and resolved.
    pub mechanism: Mechanism,
    /// Length of the span in bytes, a multiple of the page size.
    pub span: u64,
    /// How many processors each node counts as having where sets of processors are concerned; the same on all nodes.
    pub processors_each: u16,
    /// Where new threads go.
    pub threads: ThreadPolicy,
    /// Threads that go to the same node, whatever is said about the others.
    pub groups: Vec<ThreadGroup>,
    /// Where the homes of pages are.
    pub homes: Homes,
    /// Whether a [`Report::Stats`] is wanted at the end.
    pub stats: bool,
    /// Whether [`Report::Progress`] is wanted now and then.
    pub progress: bool,
    /// What is to be recorded, if anything is.
    pub monitor: Option<Monitoring>,
    /// The node's end of the control channel.
    pub control_fd: RawFd,
    /// What the environment held for each variable that the launcher has set, to be put back before the program
    /// looks.
    pub hidden_env: Vec<(String, Option<String>)>,
}

/// What the monitor of a node is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitoring {
    /// Look more closely at the data that crosses most, and less closely at the rest.
    pub auto: bool,
    /// What is to be counted besides.
    pub filters: Vec<FilterText>,
}

/// How the nodes talk to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FabricBoot {
    /// Rings in one shared memory segment.
    Shm {
        /// The segment.
        fd: RawFd,
    },
    /// TCP connections.
    Tcp {
        /// A bound and listening socket of this node.
        listener_fd: RawFd,
        /// Where each node listens, by node number; this node's own address included.
        peers: Vec<SocketAddr>,
        /// The secret of this run that authenticates and encrypts every connection; `None` only when the user
        /// has asked for bare connections.
        secret: Option<[u8; 32]>,
    },
}

/// Which programs the coherence protocol is right for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Release consistency: programs without data races.
    Rc,
    /// Sequential consistency: any program.
    Sc,
}

/// How faults are raised and resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// userfaultfd in SIGBUS mode.
    Userfaultfd,
    /// mprotect and SIGSEGV, for places that refuse userfaultfd.
    Mprotect,
}

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
    /// Counters of filters have reached their thresholds.
    Thresholds {
        /// First addresses of the units that were counted, and what their counters have reached.
        reached: Vec<(u64, u64)>,
        /// How many more there were at the same time.
        more: u64,
    },
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
    /// The program has called `exit` or returned from `main`: sent before any other node can learn of it.
    Exit {
        /// The status as the parent process of the program would see it, 0 to 255.
        status: i32,
    },
}

/// What the launcher hears from a node.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A report.
    Report(Report),
    /// A chunk of the recording.
    Chunk(Vec<u8>),
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
}

/// Why a node could not read its [`Boot`].
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The variable does not hold the number of a memfd.
    #[error("{BOOT_VARIABLE} is not the number of a readable descriptor")]
    Descriptor,
    /// The memfd could not be read.
    #[error("reading the node's description: {0}")]
    Read(#[from] io::Error),
    /// The contents are not a description.
    #[error("the node's description is damaged: {0}")]
    Parse(#[from] serde_json::Error),
    /// The launcher is another version.
    #[error("the launcher is version {0}, the runtime library is version {VERSION}")]
    Version(String),
}

impl Boot {
    /// Reads the description that the launcher has left, and closes its memfd. All descriptors named in it are
    /// marked close-on-exec, so that programs started by the program do not inherit them. The environment is left
    /// as it is: restoring [`Boot::hidden_env`] is up to the caller, who knows when nobody else looks at it.
    ///
    /// `None` if the process was not started by the launcher.
    ///
    /// # Errors
    /// If there is something, but not a description made by the same version.
    pub fn from_env() -> Result<Option<Self>, BootError> {
        let Some(number) = std::env::var_os(BOOT_VARIABLE) else { return Ok(None) };
        let fd: RawFd = number.to_str().and_then(|text| text.parse().ok()).ok_or(BootError::Descriptor)?;
        // SAFETY: F_GETFD touches no memory.
        if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            return Err(BootError::Descriptor);
        }
        // SAFETY: the descriptor is open, and by the contract with the launcher nobody else owns it.
        let boot = Self::read(unsafe { OwnedFd::from_raw_fd(fd) })?;
        boot.close_on_exec()?;
        Ok(Some(boot))
    }

    /// Reads a description from the memfd that [`Boot::to_memfd`] has made.
    ///
    /// # Errors
    /// As for [`Boot::from_env`].
    pub fn read(memfd: OwnedFd) -> Result<Self, BootError> {
        let mut file = File::from(memfd);
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        // The version comes first: another version may well have other fields.
        let version = serde_json::from_str::<VersionOnly>(&text)?.version;
        if version != VERSION {
            return Err(BootError::Version(version));
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes the description into a fresh memfd, which is close-on-exec.
    ///
    /// # Errors
    /// Of the system.
    pub fn to_memfd(&self) -> io::Result<OwnedFd> {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"gondwana-boot".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(file.into())
    }

    fn close_on_exec(&self) -> io::Result<()> {
        let fabric = match self.fabric {
            FabricBoot::Shm { fd } => fd,
            FabricBoot::Tcp { listener_fd, .. } => listener_fd,
        };
        for fd in [self.control_fd, fabric] {
            // SAFETY: F_SETFD touches no memory.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct VersionOnly {
    version: String,
}

/// One end of a control channel: a `SOCK_SEQPACKET` socket that carries one JSON message in each datagram, or a chunk of
/// a recording.
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

    /// Takes over an end, in a node [`Boot::control_fd`].
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
        let Some(datagram) = self.receive_datagram(wait)? else { return Ok(None) };
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
        match unsafe { libc::syscall(libc::SYS_poll, &raw mut poll, 1, millis) } {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.receive(true),
        }
    }

    /// Sends a chunk of a recording to the launcher.
    ///
    /// # Errors
    /// As for [`Control::send`], and if the chunk is longer than [`MAX_CHUNK`].
    pub fn send_chunk(&self, chunk: &[u8]) -> io::Result<()> {
        if chunk.len() > MAX_CHUNK {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let datagram = [&[CHUNK_MARK], chunk].concat();
        send(self.0.as_raw_fd(), &datagram, 0)
    }

    /// Receives what a node says, as [`Control::receive`] does.
    ///
    /// # Errors
    /// As for [`Control::receive`].
    pub fn receive_news(&self, wait: bool) -> io::Result<Option<News>> {
        let Some(mut datagram) = self.receive_datagram(wait)? else { return Ok(None) };
        if datagram.first() == Some(&CHUNK_MARK) {
            datagram.remove(0);
            return Ok(Some(News::Chunk(datagram)));
        }
        Ok(Some(News::Report(serde_json::from_slice(&datagram)?)))
    }

    fn receive_datagram(&self, wait: bool) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = vec![0u8; MAX_REPORT];
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        let length = loop {
            // By system call, as above. No address of the sender is asked for.
            // SAFETY: the kernel writes at most the buffer's length into the buffer.
            let length = unsafe {
                let (fd, nobody) = (self.0.as_raw_fd(), std::ptr::null_mut::<libc::c_void>());
                libc::syscall(
                    libc::SYS_recvfrom,
                    fd,
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    flags,
                    nobody,
                    nobody,
                )
            };
            if length >= 0 {
                break length as usize;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ECONNRESET) => return Ok(None),
                _ => return Err(error),
            }
        };
        if length == 0 {
            return Ok(None);
        }
        buffer.truncate(length);
        Ok(Some(buffer))
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

    fn boot() -> Boot {
        Boot {
            version: VERSION.to_owned(),
            run: u64::MAX,
            node: 1,
            nodes: 2,
            processors: 1,
            fabric: FabricBoot::Tcp {
                listener_fd: 202,
                peers: vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()],
                secret: Some([7; 32]),
            },
            consistency: Consistency::Rc,
            chosen: true,
            reason: "no inline atomic instruction".to_owned(),
            mechanism: Mechanism::Userfaultfd,
            span: 1 << 38,
            processors_each: 1,
            threads: ThreadPolicy::RoundRobin,
            groups: vec![ThreadGroup { threads: vec![1, 3], node: None }],
            homes: Homes::default(),
            stats: true,
            progress: false,
            monitor: Some(Monitoring::default()),
            control_fd: 200,
            hidden_env: vec![
                ("LD_PRELOAD".to_owned(), None),
                ("LD_BIND_NOW".to_owned(), Some(String::new())),
            ],
        }
    }

    #[test]
    fn a_description_survives_its_memfd() {
        assert_eq!(Boot::read(boot().to_memfd().unwrap()).unwrap(), boot());
    }

    #[test]
    fn another_version_is_named() {
        let other = Boot { version: "0.0.0".to_owned(), ..boot() };
        let error = Boot::read(other.to_memfd().unwrap()).unwrap_err();
        assert!(matches!(&error, BootError::Version(version) if version == "0.0.0"), "{error}");
    }

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
