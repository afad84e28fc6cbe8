//! Conversions of numbers.

/// An estimate as a whole number: without what is behind the point, and at least 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "floats have no other conversion, and this one stops at the least and the greatest number"
)]
pub(crate) fn whole(estimate: f64) -> u64 {
    estimate as u64
}

/// `number * by / of` without what is behind the point.
///
/// # Panics
/// If `of` is 0.
pub(crate) fn scaled(number: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(number) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
}
