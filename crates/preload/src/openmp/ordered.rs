//! `ordered`: parts of a loop that run in the order of the iterations.

use super::{context, share};

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_ordered_start() {
    let context = context::get();
    if !context.share.is_null() && !context.iterations().is_empty() {
        share::await_turn(&context);
    }
}

/// The turn passes when the thread asks for more iterations.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GOMP_ordered_end() {}
