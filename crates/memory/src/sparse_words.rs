//! Large arrays of which little is used.

use crate::MemoryError;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// An array of words that are 0 at first. Only the pages of it that were written cost memory.
///
/// Lasts as long as the process.
#[derive(Debug)]
pub struct SparseWords(&'static [AtomicU64]);

impl SparseWords {
    /// An array of `len` words.
    ///
    /// # Errors
    /// If the kernel has no addresses for it.
    pub fn new(len: usize) -> Result<Self, MemoryError> {
        let bytes = (len * size_of::<u64>()).max(1);
        // By system call: in the preloaded library, the function of that name is the program's.
        // SAFETY: a fresh anonymous mapping wherever the kernel likes.
        let base = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                0,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == -1 {
            return Err(MemoryError::last("reserving a table"));
        }
        // SAFETY: the mapping is that long, reads as zero and is never unmapped.
        Ok(Self(unsafe { std::slice::from_raw_parts(base as *const AtomicU64, len) }))
    }
}

impl Deref for SparseWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &Self::Target {
        self.0
    }
}
