//! Memory that the threads of a team have in common while they are in one work-sharing construct.

use super::context;
use super::sync;
use super::team::Team;
use std::ptr::null_mut;

/// Such memory, in shared memory itself. Used with the lock held that the address of its team's list names.
#[repr(C)]
pub(super) struct Common {
    next: *mut Self,
    /// The number of the construct, and what the memory is for.
    construct: (u64, Use),
    /// How many threads have left.
    left: u32,
    memory: *mut u8,
}

/// What a construct needs memory for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The code that gcc has made.
    Program,
    /// The list of the copies of reductions.
    Reductions,
}

/// The memory of the construct that the calling thread has entered: the first thread to come allocates `bytes`, all zero, and
/// prepares them. It stays until all threads have left.
pub(super) fn enter(usage: Use, bytes: usize, align: usize, prepare: impl FnOnce(*mut u8)) -> *mut u8 {
    let (team, construct) = (context::team(), (context::get().sequence, usage));
    // SAFETY: the team is the calling thread's, and its list is used with the lock held.
    let common = unsafe {
        let list = &raw mut (*team).commons;
        sync::lock(list);
        let mut found = *list;
        while !found.is_null() && (*found).construct != construct {
            found = (*found).next;
        }
        if found.is_null() {
            let memory = zeroed(bytes, align);
            prepare(memory);
            found = sync::create(Common { next: *list, construct, left: 0, memory });
            *list = found;
        }
        sync::unlock(list);
        found
    };
    context::update(|context| context.common = common);
    // SAFETY: it lives, because this thread has not left; its address never changes.
    unsafe { (*common).memory }
}

/// The memory of the construct that the calling thread is in; null if it has none.
pub(super) fn present() -> *mut u8 {
    // SAFETY: as in `enter`.
    unsafe { context::get().common.as_ref() }.map_or(null_mut(), |common| common.memory)
}

/// The calling thread leaves its construct; the last one frees the memory.
pub(super) fn leave() {
    let context = context::get();
    let (team, common) = (context.team, context.common);
    if common.is_null() {
        return;
    }
    context::update(|context| context.common = null_mut());
    // SAFETY: the list is used with the lock held; nobody uses the memory after the last thread.
    unsafe {
        let list = &raw mut (*team).commons;
        sync::lock(list);
        (*common).left += 1;
        if (*common).left == context.threads() {
            remove(team, common);
        }
        sync::unlock(list);
    }
}

/// Frees the memory of all constructs of the calling thread's team, in which no thread is any more.
pub(super) fn clear() {
    let team = context::get().team;
    // SAFETY: the team is the calling thread's; the list is used with the lock held.
    unsafe {
        let list = &raw mut (*team).commons;
        sync::lock(list);
        while !(*list).is_null() {
            remove(team, *list);
        }
        sync::unlock(list);
    }
}

/// Removes an entry that no thread uses any more.
///
/// # Safety
/// The lock of the team's list is held.
unsafe fn remove(team: *mut Team, common: *mut Common) {
    // SAFETY: the caller's promise; entries of the list live.
    unsafe {
        let mut link = &raw mut (*team).commons;
        while *link != common {
            link = &raw mut (**link).next;
        }
        *link = (*common).next;
        sync::discard((*common).memory);
        sync::discard(common);
    }
}

/// New shared memory that is all zero.
pub(super) fn zeroed(bytes: usize, align: usize) -> *mut u8 {
    let memory = sync::allocate(bytes.max(1), align.max(1));
    // SAFETY: the block was just allocated with so many bytes.
    unsafe { memory.write_bytes(0, bytes) };
    memory
}
