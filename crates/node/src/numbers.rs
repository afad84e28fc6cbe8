//! Conversions of numbers that more than one part of the node needs.

use std::time::Duration;

/// A time in nanoseconds, of which 64 bits have room for centuries.
#[inline]
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    time.as_secs() * 1_000_000_000 + u64::from(time.subsec_nanos())
}

/// The error number that another node has answered.
#[inline]
pub(crate) fn error_number(answer: i64) -> i32 {
    i32::try_from(answer).unwrap_or(libc::EPROTO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_cut_off() {
        assert_eq!(nanoseconds(Duration::new(5_000_000_000, 999_999_999)), 5_000_000_000_999_999_999);
        assert_eq!([2, 1 << 32].map(error_number), [libc::ENOENT, libc::EPROTO]);
    }
}
