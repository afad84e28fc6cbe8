//! Threads that print to standard output without its lock: by `putc_unlocked`, `fwrite_unlocked` and the like.
//!
//! A release writes out what standard output holds, so that what others print after the acquire comes behind it. It takes the stream's lock
//! for that, which does not keep away a thread that prints without the lock. That thread writes out what it printed itself, at its own next
//! release, and nobody else does until then: it *owns* the buffer. Who becomes the owner waits until nobody else is writing it out.
//!
//! A call shows who prints, but an inlined `putc_unlocked` makes one only if the buffer has no room. So the buffer shows no room unless a thread owns it.
//! Who prints otherwise gets there by the functions of the C library's tables (`stream_order`), which show the room as long as the call takes.

use super::{buffered, output};
use crate::pthread::native_self;
use gondwana_locks::lock;
use libc::{FILE, c_int};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The C library's name of the thread that owns the buffer; 0 for none.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// Held while a release writes out the buffer.
static WRITING: Mutex<()> = Mutex::new(());

fn own(me: u64) {
    if OWNER.swap(me, Ordering::Relaxed) != me {
        drop(lock(&WRITING));
    }
}

/// Called before inlined code prints a byte for which it found no room: it may use the room that it finds afterwards.
#[inline]
pub(super) fn inlined(stream: *mut FILE) {
    if output::is_output(stream) {
        own(native_self());
    }
}

/// Makes a call of the C library that puts something into the stream's buffer.
///
/// # Safety
/// The stream is open, and the calling thread may use it.
pub(super) unsafe fn printing<R>(stream: *mut FILE, call: impl FnOnce() -> R) -> R {
    if !output::is_output(stream) {
        return call();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let me = native_self();
        if !buffered::is_locked_here(stream) {
            own(me);
        } else if OWNER.load(Ordering::Relaxed) != me {
            OWNER.store(0, Ordering::Relaxed);
        }
        buffered::show_room(stream);
        let result = call();
        if OWNER.load(Ordering::Relaxed) == 0 {
            buffered::hide_room(stream);
        }
        result
    }
}

/// True if the calling thread's next release is to write out standard output, which may hold something.
///
/// # Safety
/// It is this node's standard output.
#[inline]
pub(crate) unsafe fn must_flush(stream: *const FILE) -> bool {
    match OWNER.load(Ordering::Relaxed) {
        // SAFETY: the stream exists as long as the process.
        0 => unsafe { buffered::may_hold_output(stream) },
        owner => owner == native_self(),
    }
}

/// Writes out standard output, unless another thread owns it.
///
/// # Safety
/// It is this node's standard output, and the calling thread has locked it.
pub(crate) unsafe fn flush(stream: *mut FILE) {
    let _writing = lock(&WRITING);
    // SAFETY: the lock keeps those away that print with it, and `WRITING` those that print without.
    unsafe {
        if must_flush(stream) {
            crate::real!(fflush_unlocked: fn(*mut FILE) -> c_int)(stream);
            OWNER.store(0, Ordering::Relaxed);
            buffered::hide_room(stream);
        }
    }
}
