//! When a prediction is checked against what the program does.
//!
//! No fault shows whether a prefetched page is used. So a prediction that repeats is withheld now and then: the faults
//! then show whether it still holds.

/// The first check comes after so many repetitions, later ones ever less often.
const FIRST_CHECK: u32 = 8;

/// The most repetitions from one check to the next.
const CHECK: u32 = 256;

/// True if a prediction that has repeated itself so often is to be checked this time.
pub(crate) fn is_due(repeated: u32) -> bool {
    repeated >= FIRST_CHECK && (repeated.is_power_of_two() || repeated.is_multiple_of(CHECK))
}
