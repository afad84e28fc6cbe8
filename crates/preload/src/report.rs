//! Messages for the user about fatal errors.

/// Writes one line to standard error without the C library's buffers.
pub(crate) fn line(text: &str) {
    gondwana_interpose::message::write_line(libc::STDERR_FILENO, text);
}

/// Writes lines of the program's own to standard error, in one piece.
pub(crate) fn plain(text: &str) {
    let text = format!("{text}\n");
    // SAFETY: the kernel reads as many bytes as it is told.
    unsafe { gondwana_sys::syscall!(libc::SYS_write, libc::STDERR_FILENO, text.as_ptr(), text.len()) };
}

/// Ends this process, and with it the run.
pub(crate) fn fatal(text: &str) -> ! {
    line(text);
    end()
}

/// The same when the launcher knows the reason.
pub(crate) fn end() -> ! {
    // By system call: the interposed function would end the whole run in order, for which it is too late. SAFETY:
    // ends the process at once; nothing is left to be protected.
    unsafe { gondwana_sys::syscall!(libc::SYS_exit_group, 125) };
    unreachable!("exit_group does not return")
}
