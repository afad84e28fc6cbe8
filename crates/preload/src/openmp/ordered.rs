//! `ordered`: parts of a loop that run in the order of the iterations.

use super::{context, work_sharing};

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_ordered_start() {
    let context = context::get();
    if !context.share.is_null() && !context.iterations().is_empty() {
        work_sharing::await_turn(&context);
    }
}

/// The turn passes when the thread gets its next chunk.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_ordered_end() {}
