//! Numbers as C passes them.

use libc::c_int;
use std::time::{Duration, Instant};

/// A count that is passed as a signed number: there is nothing where it is negative.
pub(crate) fn many(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// A result of which the function of the C library gives an `int`: small, or -1. What is too large is the largest.
pub(crate) fn int(result: impl TryInto<c_int>) -> c_int {
    result.try_into().unwrap_or(c_int::MAX)
}

/// When a wait ends that begins now; `None`, as for one without an end, where the clock does not go so far.
pub(crate) fn after(longest: Duration) -> Option<Instant> {
    Instant::now().checked_add(longest)
}

/// A byte that is passed as an `int`, of which the rest does not count.
pub(crate) fn byte(number: c_int) -> u8 {
    number.to_le_bytes()[0]
}

/// What the kernel takes of an argument of 32 bits.
pub(crate) fn low_half(word: usize) -> u32 {
    (word as u64 & 0xffff_ffff) as u32
}
