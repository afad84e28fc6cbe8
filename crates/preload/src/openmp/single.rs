//! `single`: the first thread runs it, with or without copyprivate.

use super::context;
use super::share::Share;
use super::sync::{self, Name};
use super::team::Team;
use super::work_sharing;
use libc::c_void;
use std::ptr::null_mut;

/// Enters the construct; true for the first thread.
pub(super) fn is_first() -> bool {
    work_sharing::enter(Share::of_sections(1));
    let first = work_sharing::next().is_some();
    work_sharing::leave();
    first
}

/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_single_start() -> bool {
    is_first()
}

/// The number of the construct that the thread has entered last, and what names the announcements of its team.
fn announcements() -> (u64, *const Name) {
    let context = context::get();
    (context.sequence, Team::copies_of(context.team))
}

/// Gives the other threads the data of the one that is in the construct.
pub(super) fn give(data: *mut c_void) {
    let (number, name) = announcements();
    if context::get().threads() > 1 {
        sync::announce_to_all(name, number, vec![data as u64]);
    }
}

/// Waits for the data of the thread that is in the construct.
pub(super) fn take() -> *mut c_void {
    let (number, name) = announcements();
    let (_, words) = sync::await_announcement(name, number - 1);
    words[0] as *mut c_void
}

/// Null for the first thread; the others wait for its data.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_single_copy_start() -> *mut c_void {
    if is_first() { null_mut() } else { take() }
}

/// A barrier follows, before which the data stays as it is.
///
/// # Safety
/// Called by code that gcc has compiled.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn GOMP_single_copy_end(data: *mut c_void) {
    give(data);
}
