//! How the launcher ends: as the program would have.

use crate::process::events::End;
use std::process::ExitCode;

/// Ends this process like the program: dies of the signal, or returns the exit code for `main`.
pub fn like(end: End) -> ExitCode {
    match end {
        End::Exited(status) => ExitCode::from(status.to_le_bytes()[0]),
        End::Signalled(signal) => {
            die_of(signal);
            // A signal cannot end the first process of a container.
            ExitCode::from(status_of(signal))
        }
    }
}

/// The exit status by which shells report a signal.
pub(crate) fn status_of(signal: i32) -> u8 {
    128u8.wrapping_add(signal.to_le_bytes()[0])
}

/// Dies of a signal, so that a shell prints the same as for the program. Returns only if that fails.
fn die_of(signal: i32) {
    use std::io::Write;
    // A failure to write is no reason to survive.
    let _ = std::io::stdout().flush();
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the sets and limits are plain memory of this frame. The default action of a signal is being restored,
    // so no handler of ours runs.
    unsafe {
        // The program has dumped core if enabled; the launcher's core would be useless.
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        // For this thread alone: a signal for the process might be taken by the thread that reads signals.
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}
