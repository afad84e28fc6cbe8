//! Large, sparsely used arrays.

use crate::MemoryError;
use crate::mapping::map_private;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// An array of words that are 0 at first. Only written pages of it cost memory.
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
}

impl Deref for SparseWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &Self::Target {
        self.0
    }
}
