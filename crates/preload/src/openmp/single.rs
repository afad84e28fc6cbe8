//! `single`: the first thread runs it, with or without copyprivate.

use super::context;
use super::membership;
use super::share::Share;
use super::work_sharing;
use libc::c_void;
use std::ptr::null_mut;

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_single_start() -> bool {
    let first = work_sharing::enter(|| Share::of_sections(0));
    work_sharing::leave();
    first
}

/// Null for the first thread; the others wait for its data.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_single_copy_start() -> *mut c_void {
    if work_sharing::enter(|| Share::of_sections(0)) {
        return null_mut();
    }
    membership::barrier();
    // SAFETY: the thread is in this piece of work; the first thread has written before the barrier.
    let copy = unsafe { (*context::get().share).copy };
    work_sharing::leave();
    copy as *mut c_void
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_single_copy_end(data: *mut c_void) {
    // SAFETY: the thread is in this piece of work; the others read after the barrier.
    unsafe { (*context::get().share).copy = data as usize };
    membership::barrier();
    work_sharing::leave();
}
