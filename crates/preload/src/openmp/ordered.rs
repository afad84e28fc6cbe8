//! `ordered`: parts of a loop that run in the order of the iterations.

use super::work_sharing;

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_ordered_start() {
    work_sharing::await_turn();
}

/// The turn passes when the thread gets its next chunk.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_ordered_end() {}
