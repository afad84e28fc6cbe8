//! The parent of a program with memory that is bound to certain nodes.
//!
//! When these are full, the kernel kills the program without a message. Only a parent learns how a program ended, so
//! the command stays as its parent: it passes signals on, stops and continues with the program, and ends as the
//! program does.

use super::bound::Bound;
use gondwana_host::sys::{self, Policy};
use gondwana_launcher::exit;
use gondwana_launcher::process::events::End;
use gondwana_topology::Bytes;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The name of such a parent in process lists.
const NAME: &CStr = c"gondwana-exec";

/// Signals that keys and windows of a terminal send to the program as well.
const OF_TERMINAL: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGWINCH];

/// Signals that stop the whole job.
const STOPPING: [libc::c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Starts the program, waits for its end and ends as it does. Prints the reason if it was killed for lack of memory.
///
/// # Errors
/// Those of starting the program.
pub(super) fn stay_with(command: &mut Command, bound: &Bound) -> io::Result<ExitCode> {
    let signals = Signals::take()?;
    let program = start(command, &signals)?;
    // SAFETY: the name is a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    // The final message must not need memory of full nodes.
    let _ = sys::set_policy(&Policy::Default);
    let (end, most) = follow(program, &signals)?;
    if let Some(sentence) = bound.why(command.get_program(), end, most) {
        eprintln!("gondwana: {sentence}");
    }
    Ok(exit::like(end))
}

/// The child of such a parent, or else the process itself.
pub(crate) fn program_of(process: u32) -> u32 {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).ok();
    let is_parent = read("comm").is_some_and(|name| NAME.to_str() == Ok(name.trim_end()));
    let child = is_parent.then(|| read(&format!("task/{process}/children"))).flatten();
    child.and_then(|child| child.trim().parse().ok()).unwrap_or(process)
}

/// Blocked signals of this process, which are read one by one.
struct Signals {
    all: libc::sigset_t,
    /// The signals that were blocked before.
    before: libc::sigset_t,
    /// The previous action for SIGCHLD.
    child: libc::sighandler_t,
}

impl Signals {
    fn take() -> io::Result<Self> {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the calls write the sets, of which the second is asked for only if the first is there.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            // Children of a process that ignores their ends leave no status.
            let child = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            if libc::sigprocmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { all: all.assume_init(), before: before.assume_init(), child })
        }
    }

    /// Waits for the next signal; its number, and whether the kernel has sent it.
    fn next(&self) -> Option<(libc::c_int, bool)> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the kernel writes the record if it returns a signal.
        unsafe {
            let signal = libc::sigwaitinfo(&raw const self.all, info.as_mut_ptr());
            (signal > 0).then(|| (signal, info.assume_init_ref().si_code == libc::SI_KERNEL))
        }
    }
}

/// Starts the program with the original signal mask and action; it dies with this process.
fn start(command: &mut Command, signals: &Signals) -> io::Result<libc::pid_t> {
    let (before, child) = (signals.before, signals.child);
    let parent = std::process::id();
    let prepare = move || {
        // SAFETY: these calls only change what this process has of the kernel, and may be made between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before the kernel knew.
            if std::os::unix::process::parent_id() != parent {
                libc::_exit(0);
            }
            libc::signal(libc::SIGCHLD, child);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls and allocates nothing.
    let program = unsafe { command.pre_exec(prepare) }.spawn()?;
    Ok(program.id().cast_signed())
}

/// Passes signals on until the program has ended; returns how, and the peak memory of it and of its reaped children.
fn follow(program: libc::pid_t, signals: &Signals) -> io::Result<(End, Bytes)> {
    loop {
        match signals.next() {
            Some((libc::SIGCHLD, _)) => {
                if let Some(ended) = look_after(program)? {
                    return Ok(ended);
                }
            }
            Some((signal, true)) if OF_TERMINAL.contains(&signal) => {}
            // SAFETY: touches no memory; the program has not been waited for, so the number is still its own.
            Some((signal, _)) => _ = unsafe { libc::kill(program, signal) },
            None => {}
        }
    }
}

/// Returns how the program has ended, if it has; if it has stopped, this process stops too.
fn look_after(program: libc::pid_t) -> io::Result<Option<(End, Bytes)>> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    loop {
        let flags = libc::WNOHANG | libc::WUNTRACED;
        // SAFETY: the kernel writes a status and a record of which all zeros are valid, too.
        let (found, usage) = unsafe {
            let found = libc::wait4(program, &raw mut status, flags, usage.as_mut_ptr());
            (found, usage.assume_init_ref())
        };
        match found {
            0 => return Ok(None),
            found if found < 0 => return Err(io::Error::last_os_error()),
            _ if libc::WIFSTOPPED(status) => {
                if STOPPING.contains(&libc::WSTOPSIG(status)) {
                    // SAFETY: stops this process until somebody continues it. The signal for that is passed on.
                    unsafe { libc::raise(libc::SIGSTOP) };
                }
            }
            _ => {
                let most = Bytes(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10);
                let end = if libc::WIFSIGNALED(status) {
                    End::Signalled(libc::WTERMSIG(status))
                } else {
                    End::Exited(libc::WEXITSTATUS(status))
                };
                return Ok(Some((end, most)));
            }
        }
    }
}
