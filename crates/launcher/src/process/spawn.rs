//! Starting the process of one node.

use super::descriptors::{COUNT, Reserved};
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

/// A program as `execve` takes it.
#[derive(Clone, Debug)]
pub struct ProcessImage {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<(OsString, OsString)>,
}

impl ProcessImage {
    /// A program with its arguments, including its name, and this environment.
    pub fn new(
        path: &Path,
        arguments: &[OsString],
        environment: Vec<(OsString, OsString)>,
    ) -> io::Result<Self> {
        let arguments = arguments.iter().map(|word| Ok(CString::new(word.as_bytes())?));
        Ok(Self {
            path: CString::new(path.as_os_str().as_bytes())?,
            arguments: arguments.collect::<io::Result<_>>()?,
            environment,
        })
    }

    /// The value of an environment variable.
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The same program with other values of some variables. The order of the variables stays.
    #[must_use]
    pub fn with_variables(&self, variables: &[(&str, OsString)]) -> Self {
        let mut image = self.clone();
        for (name, value) in variables {
            match image.environment.iter_mut().find(|(key, _)| key == name) {
                Some((_, old)) => old.clone_from(value),
                None => image.environment.push(((*name).into(), value.clone())),
            }
        }
        image
    }

    /// Replaces this process by the program. Returns only if that fails.
    pub fn replace_process(&self) -> io::Error {
        match Vectors::new(self) {
            // SAFETY: the vectors are null-terminated arrays of C strings that outlive the call.
            Ok(vectors) => unsafe {
                heed_signals();
                libc::execve(self.path.as_ptr(), vectors.arguments.as_ptr(), vectors.environment.as_ptr());
                io::Error::last_os_error()
            },
            Err(error) => error,
        }
    }
}

/// The arrays that `execve` wants.
struct Vectors {
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    _strings: Vec<CString>,
}

impl Vectors {
    fn new(image: &ProcessImage) -> io::Result<Self> {
        let strings: Vec<CString> = image
            .environment
            .iter()
            .map(|(key, value)| {
                let mut text = key.clone().into_vec();
                text.push(b'=');
                text.extend_from_slice(value.as_bytes());
                Ok(CString::new(text)?)
            })
            .collect::<io::Result<_>>()?;
        let terminated = |words: &[CString]| {
            words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        Ok(Self {
            arguments: terminated(&image.arguments),
            environment: terminated(&strings),
            _strings: strings,
        })
    }
}

/// What a process has besides a child of a shell.
pub struct Setup<'a> {
    /// Signals that the program finds blocked.
    pub mask: libc::sigset_t,
    /// The control channel, description, fabric, frames, thread memory and exchange, as far as they exist, and their
    /// numbers in the node.
    pub inherited: Option<(&'a Reserved, [Option<RawFd>; COUNT])>,
    /// Standard input, output and error; `None` is the launcher's own.
    pub streams: [Option<OwnedFd>; 3],
    /// Whether the process leaves the launcher's process group and so gets no signals of the terminal's keys:
    /// natively they reach the program once, not once for each node.
    pub apart: bool,
}

/// The increase of `oom_score_adj` of a node over the launcher: the launcher must survive to report it and to end the
/// other nodes.
const SOONER: i32 = 300;

/// The file of a process's OOM score adjustment.
const LIKELIHOOD: &CStr = c"/proc/self/oom_score_adj";

/// The likelihood of a node, as text.
fn likelihood() -> String {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    (own.trim().parse().unwrap_or(0) + SOONER).min(1000).to_string()
}

/// The stack of a child until `execve`: a few frames of system calls.
const STACK: usize = 64 * 1024;

/// The data that a child needs for `execve`.
struct Birth<'a> {
    image: &'a ProcessImage,
    vectors: &'a Vectors,
    setup: &'a Setup<'a>,
    parent: libc::pid_t,
    likelihood: String,
    /// The error number of a failure.
    error: AtomicI32,
}

/// Starts a process that dies with the calling thread. Returns its number.
///
/// The child shares this process's memory until `execve`, and this thread waits until then: nothing is copied.
///
/// # Errors
/// Of the system, also those of the new process before `execve`.
pub fn spawn(image: &ProcessImage, setup: &Setup<'_>) -> io::Result<libc::pid_t> {
    let vectors = Vectors::new(image)?;
    // SAFETY: getpid touches no memory.
    let parent = unsafe { libc::getpid() };
    let mut birth =
        Birth { image, vectors: &vectors, setup, parent, likelihood: likelihood(), error: AtomicI32::new(0) };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: stacks grow downwards from their ends, which are aligned. The child allocates nothing, takes no lock and does
    // not return; what it is given lives until it needs it no more, which is when this call returns. It runs no handler of
    // signals: the launcher has blocked those that it reads, and handles no others but its own faults.
    let pid = unsafe {
        libc::clone(become_program, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut birth).cast())
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    match birth.error.into_inner() {
        0 => Ok(pid),
        error => {
            // SAFETY: reaps the child, whose status nobody wants.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// The child's only function.
extern "C" fn become_program(birth: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `spawn` passes its own structure. This is the child; the vectors are null-terminated arrays of C strings.
    unsafe {
        let birth = &*birth.cast::<Birth<'_>>();
        let error = match prepare(birth.setup, birth.parent, &birth.likelihood) {
            Ok(()) => {
                let (arguments, environment) = (&birth.vectors.arguments, &birth.vectors.environment);
                libc::execve(birth.image.path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                errno()
            }
            Err(error) => error,
        };
        birth.error.store(error, Ordering::Relaxed);
        // Runs none of the launcher's destructors.
        libc::_exit(127)
    }
}

/// What the child does before `execve`; returns the error number of a failure.
///
/// # Safety
/// Only in the child. Allocates nothing and takes no lock.
unsafe fn prepare(setup: &Setup<'_>, parent: libc::pid_t, likelihood: &str) -> Result<(), i32> {
    let check = |result: libc::c_int| if result < 0 { Err(errno()) } else { Ok(result) };
    // SAFETY: none of these calls touches memory but the signal set given.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // The launcher may have died before PR_SET_PDEATHSIG.
        if libc::getppid() != parent {
            libc::_exit(127);
        }
        // Sets the child's value only. If it fails, the kernel may kill the launcher first.
        let file = libc::open(LIKELIHOOD.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::write(file, likelihood.as_ptr().cast(), likelihood.len());
        libc::close(file);
        if setup.apart {
            check(libc::setpgid(0, 0))?;
            // Discards signals that the terminal's keys have sent to the group so far, by ignoring them once.
            for key in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                let before = libc::signal(key, libc::SIG_IGN);
                libc::signal(key, before);
            }
            // A terminal with `stty tostop` must not halt a node that prints.
            libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        }
        for (number, stream) in (0..).zip(&setup.streams) {
            if let Some(stream) = stream {
                check(libc::dup2(stream.as_raw_fd(), number))?;
            }
        }
        if let Some((reserved, sources)) = &setup.inherited {
            // Addresses must be the same on all nodes. The launcher has checked that this works, or that the computer
            // does not randomise.
            fix_addresses();
            for (source, target) in sources.iter().zip(reserved.all()) {
                if let Some(source) = *source {
                    check(libc::dup2(source, target))?;
                }
            }
        }
        heed_signals();
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const setup.mask, std::ptr::null_mut()))?;
    }
    Ok(())
}

/// The program that this process executes next ignores no signals that this one does. Async-signal-safe.
fn heed_signals() {
    // SAFETY: touches no memory.
    unsafe {
        // Rust programs ignore SIGPIPE; the user's shell most probably does not.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        // As the launcher does SIGXFSZ.
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
    }
}

/// The program that this process executes next is mapped at the same addresses each time. Async-signal-safe.
pub(crate) fn fix_addresses() {
    // SAFETY: touches no memory.
    unsafe {
        let persona = libc::personality(0xffff_ffff);
        libc::personality((persona | libc::ADDR_NO_RANDOMIZE).cast_unsigned().into());
    }
}

fn errno() -> i32 {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}
