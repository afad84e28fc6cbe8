//! Memory that a thread uses until the kernel has ended it.

use libc::pid_t;

/// Addresses of memory of threads that have ended or are about to, with the kernel's number of each.
pub(crate) struct LeftBehind(Vec<(usize, pid_t)>);

impl LeftBehind {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds memory that a thread uses until it has ended.
    pub(crate) fn add(&mut self, memory: usize, thread: pid_t) {
        self.0.push((memory, thread));
    }

    /// Takes out memory that no thread uses any more.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let index = self.0.iter().position(|&(_, thread)| has_ended(thread))?;
        Some(self.0.swap_remove(index).0)
    }
}

/// True if no thread of this process has this number any more.
pub(crate) fn has_ended(thread: pid_t) -> bool {
    // SAFETY: sends nothing.
    let result = unsafe { gondwana_sys::syscall!(libc::SYS_tgkill, gondwana_sys::process(), thread, 0) };
    result != 0
}
