//! Large arrays of which little is used.

use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use crate::mapping::map_private;
use std::ops::{Deref, Range};
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
        let base = map_private((len * size_of::<u64>()).max(1))?;
        // SAFETY: the mapping is that long, reads as zero and is never unmapped.
        Ok(Self(unsafe { std::slice::from_raw_parts(base.cast(), len) }))
    }

    /// Takes memory for a range that is about to be used, in one call of the kernel instead of a fault or two for each page of
    /// it. A kernel that does not know how leaves that to the faults.
    ///
    /// # Panics
    /// If the range ends behind the array.
    pub fn provide(&self, range: Range<usize>) {
        let words = &self.0[range];
        let start = words.as_ptr().addr() / PAGE_SIZE * PAGE_SIZE;
        let bytes = words.as_ptr_range().end.addr() - start;
        // By system call: in the preloaded library, the function of that name is the program's.
        // SAFETY: whole pages of this array's own mapping; what they hold stays.
        unsafe { libc::syscall(libc::SYS_madvise, start, bytes, libc::MADV_POPULATE_WRITE) };
    }
}

impl Deref for SparseWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &Self::Target {
        self.0
    }
}
