//! Signals that the launcher receives on behalf of the program.

use gondwana_console::failure::Failure;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Signals that are passed on to node 0.
const FORWARDED: [i32; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
];

/// Keeps the signals of interest from ending the launcher and makes them readable instead.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// True if the kernel sent it, as it does for keys pressed on the terminal.
    pub from_kernel: bool,
}

impl Signals {
    /// Blocks the signals and opens the descriptor. With `forwarded` false only the ends of children are
    /// reported.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new(forwarded: bool) -> Result<Self, Failure> {
        Self::open(forwarded).map_err(|error| Failure::system("receiving signals", &error))
    }

    fn open(forwarded: bool) -> io::Result<Self> {
        // SAFETY: sigset_t is plain memory that sigemptyset initialises before use; the calls touch only these
        // sets.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            if forwarded {
                for signal in FORWARDED {
                    libc::sigaddset(&raw mut set, signal);
                }
            }
            // A parent that ignores SIGCHLD would have the kernel reap our nodes before we see how they ended.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before) < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), before })
        }
    }

    /// The signals that were blocked before; they are blocked again in a started program.
    pub fn mask_before(&self) -> libc::sigset_t {
        self.before
    }

    /// The next signal, if one has arrived.
    pub fn read(&self) -> Option<Arrived> {
        // SAFETY: signalfd_siginfo is plain memory for which zero is valid; the kernel writes at most its size.
        let (info, length) = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let length = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            (info, length)
        };
        (length > 0).then_some(Arrived {
            signal: info.ssi_signo.cast_signed(),
            from_kernel: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

/// The signals that this thread blocks.
pub(crate) fn blocked_now() -> libc::sigset_t {
    // SAFETY: sigset_t is plain memory for which zero is valid; the kernel writes one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        set
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
