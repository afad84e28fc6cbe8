//! An event of the runtime: a descriptor that its threads make readable.

use crate::numbers::int;
use libc::c_int;

/// An `eventfd`, closed in the end.
pub(super) struct Event(c_int);

impl Event {
    /// Nothing has happened yet. Reading it does not wait.
    ///
    /// # Errors
    /// The error number: no descriptor is left.
    pub(super) fn new() -> Result<Self, c_int> {
        // SAFETY: touches no memory.
        let number =
            unsafe { gondwana_sys::syscall!(libc::SYS_eventfd2, 0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if number < 0 { Err(crate::errno::get()) } else { Ok(Self(int(number))) }
    }

    /// Its number.
    pub(super) fn number(&self) -> c_int {
        self.0
    }

    /// Makes it readable.
    pub(super) fn notify(&self) {
        let one = Box::new(1_u64);
        // SAFETY: the word is private.
        unsafe { gondwana_sys::syscall!(libc::SYS_write, self.0, &raw const *one, size_of::<u64>()) };
    }

    /// Makes it unreadable.
    pub(super) fn forget(&self) {
        let mut count = Box::new(0_u64);
        // SAFETY: the word is private.
        unsafe { gondwana_sys::syscall!(libc::SYS_read, self.0, &raw mut *count, size_of::<u64>()) };
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it is this one's.
        unsafe { gondwana_sys::syscall!(libc::SYS_close, self.0) };
    }
}
