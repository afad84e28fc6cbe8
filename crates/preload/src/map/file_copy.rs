//! Files as memory of this process alone.

use super::kernel;
use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

/// The contents of a file, of which this process has its own version.
pub(crate) struct FileCopy {
    start: *mut u8,
    length: usize,
}

impl FileCopy {
    /// So many bytes of a file, from its first on.
    pub(crate) fn of(file: &File, length: usize) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: maps anywhere.
        let start =
            unsafe { kernel::mmap(null_mut(), length, access, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        (start != libc::MAP_FAILED && length > 0).then_some(Self { start: start.cast(), length })
    }
}

impl Deref for FileCopy {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: it is mapped as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl DerefMut for FileCopy {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the mapping is this value's own.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for FileCopy {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { kernel::munmap(self.start.cast(), self.length) };
    }
}
