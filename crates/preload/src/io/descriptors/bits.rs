//! A set of the numbers that a run divides.

use super::division::MOST;
use libc::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = (MOST as usize).div_ceil(64);

/// One bit for each number. Larger numbers are never in it.
pub(super) struct Bits([AtomicU64; WORDS]);

impl Bits {
    pub(super) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    #[inline]
    fn word_of(&self, number: c_int) -> Option<(&AtomicU64, u64)> {
        // Negative numbers are beyond the end.
        self.0.get(number.cast_unsigned() as usize / 64).map(|word| (word, 1 << (number % 64)))
    }

    #[inline]
    pub(super) fn is_set(&self, number: c_int) -> bool {
        self.word_of(number).is_some_and(|(word, bit)| word.load(Ordering::SeqCst) & bit != 0)
    }

    pub(super) fn set(&self, number: c_int) {
        if let Some((word, bit)) = self.word_of(number) {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// True if it was set.
    pub(super) fn clear(&self, number: c_int) -> bool {
        self.word_of(number).is_some_and(|(word, bit)| word.fetch_and(!bit, Ordering::SeqCst) & bit != 0)
    }

    /// 64 numbers in a row.
    pub(super) fn word(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |word| word.load(Ordering::SeqCst))
    }
}
