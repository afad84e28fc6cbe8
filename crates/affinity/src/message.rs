//! Sentences on standard error.

use std::os::fd::RawFd;
use std::sync::OnceLock;

/// A copy of standard error: programs close theirs before they end.
static ERRORS: OnceLock<RawFd> = OnceLock::new();

/// Keeps a copy of standard error, out of the way of the descriptors that programs count on.
pub(crate) fn keep_standard_error() {
    // SAFETY: the copy is nobody else's.
    ERRORS.get_or_init(|| unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 200) });
}

/// Writes a line in one piece.
pub(crate) fn say(sentence: &str) {
    let errors = ERRORS.get().copied().unwrap_or(libc::STDERR_FILENO);
    gondwana_interpose::message::write_line(errors, sentence);
}

/// Aborts a program that frees an invalid block, as the C library does.
pub(crate) fn say_and_abort(function: &str, address: usize) -> ! {
    say(&format!("{function}(): there is no block at {address:#x}: it was freed before, or never allocated"));
    std::process::abort()
}
