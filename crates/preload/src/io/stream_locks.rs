//! The locks of streams (`flockfile`), which threads of all nodes have in common: the stream's own, at the node that has opened
//! it. A thread of another node has it as long as it likes, and makes its calls under it.

use super::delegations::{self, Locked};
use super::streams_elsewhere::{Elsewhere, elsewhere};
use super::{buffered, output, stream_memory};
use crate::exit::flush_output;
use crate::private_stack::uninterrupted;
use crate::pthread::native_self;
use gondwana_locks::lock;
use libc::{FILE, c_int};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A thread of another node that has locked a stream, and how often.
struct Holder {
    thread: u64,
    times: u64,
}

/// Streams of this node that threads of other nodes have locked, by address.
static HELD: Mutex<BTreeMap<usize, Holder>> = Mutex::new(BTreeMap::new());

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How often standard output of this node is locked by `flockfile`.
static OUTPUT_LOCKS: AtomicUsize = AtomicUsize::new(0);

/// True if a thread of the program keeps standard output of this node locked, or is about to. It may do so for long.
pub(crate) fn is_output_kept() -> bool {
    OUTPUT_LOCKS.load(Ordering::SeqCst) > 0
}

/// A thread is about to lock a stream.
fn keep(stream: *mut FILE) {
    if output::is_output(stream) {
        OUTPUT_LOCKS.fetch_add(1, Ordering::SeqCst);
    }
}

/// It has unlocked it, or not locked it.
fn let_go(stream: *mut FILE) {
    if output::is_output(stream) {
        OUTPUT_LOCKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The owner of a lock that a thread of another node has: no thread of this one.
const ELSEWHERE: u64 = 1;

/// True if the thread of another node has locked the stream.
pub(super) fn is_held_by(stream: *mut FILE, thread: u64) -> bool {
    let is_holder = move || lock(&HELD).get(&(stream as usize)).is_some_and(|holder| holder.thread == thread);
    COUNT.load(Ordering::Relaxed) > 0 && uninterrupted(is_holder)
}

/// Makes a call for a thread of another node: if that has locked the stream, then so has the calling thread meanwhile.
pub(super) fn as_holder<R>(stream: *mut FILE, thread: u64, call: impl FnOnce() -> R) -> R {
    if !is_held_by(stream, thread) {
        return call();
    }
    // SAFETY: the stream is locked for that thread, which makes one call at a time.
    unsafe { buffered::set_owner(stream, native_self()) };
    let result = call();
    if is_held_by(stream, thread) {
        // SAFETY: as above.
        unsafe { buffered::set_owner(stream, ELSEWHERE) };
    }
    result
}

/// In [`as_holder`], on a stream that the calling thread has locked: locks it once more, for the thread of another node.
pub(super) fn lock_for(stream: *mut FILE, thread: u64) {
    keep(stream);
    Locked::new(stream).keep();
    uninterrupted(move || {
        let mut held = lock(&HELD);
        let holder = held.entry(stream as usize).or_insert_with(|| {
            COUNT.fetch_add(1, Ordering::Relaxed);
            Holder { thread, times: 0 }
        });
        holder.times += 1;
    });
    // SAFETY: this thread has locked it.
    unsafe { buffered::set_owner(stream, ELSEWHERE) };
}

/// In [`as_holder`]: unlocks the stream once for the thread of another node.
pub(super) fn unlock_for(stream: *mut FILE, thread: u64) {
    if !is_held_by(stream, thread) {
        return;
    }
    let is_last = uninterrupted(move || {
        lock(&HELD).get_mut(&(stream as usize)).is_some_and(|holder| {
            holder.times -= 1;
            holder.times == 0
        })
    });
    if is_last {
        forget(stream);
    }
    // SAFETY: it was locked for that thread.
    unsafe { crate::real!(funlockfile: fn(*mut FILE))(stream) };
    let_go(stream);
}

/// No thread of another node has locked the stream any more.
pub(super) fn forget(stream: *mut FILE) {
    uninterrupted(move || {
        if lock(&HELD).remove(&(stream as usize)).is_some() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    });
}

/// Unlocks all streams that threads of other nodes have locked, at the end of the program: one of them may be what ends it, and what is
/// still done is done by threads of this node.
pub(crate) fn release_all() {
    let held = uninterrupted(|| std::mem::take(&mut *lock(&HELD)));
    COUNT.fetch_sub(held.len(), Ordering::Relaxed);
    for (stream, holder) in held {
        let stream = stream as *mut FILE;
        for _ in 0..holder.times {
            // SAFETY: locked so often for a thread of another node.
            unsafe {
                buffered::set_owner(stream, native_self());
                crate::real!(funlockfile: fn(*mut FILE))(stream);
            }
        }
    }
}

/// Node 0's stream whose lock stands for those of all nodes, if that is not the stream itself: each node prints by streams of its
/// own.
fn first_of(stream: *mut FILE) -> Option<Elsewhere> {
    let name = stream_memory::common_name_of(stream)?;
    Elsewhere::without_record(0, name).filter(|there| !there.is_here())
}

/// Locks a stream of this node.
fn lock_here(stream: *mut FILE) {
    keep(stream);
    let locked = Locked::new(stream);
    delegations::recall(stream);
    locked.keep();
}

/// # Safety
/// As the C library's `flockfile`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn flockfile(stream: *mut FILE) {
    if let Some(there) = elsewhere(stream) {
        return there.lock();
    }
    if let Some(first) = first_of(stream) {
        first.lock();
    }
    lock_here(stream);
}

/// # Safety
/// As the C library's `ftrylockfile`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ftrylockfile(stream: *mut FILE) -> c_int {
    if let Some(there) = elsewhere(stream) {
        return c_int::from(!there.try_lock());
    }
    let first = first_of(stream);
    if first.as_ref().is_some_and(|first| !first.try_lock()) {
        return 1;
    }
    keep(stream);
    if let Some(locked) = Locked::at_once(stream) {
        delegations::recall(stream);
        locked.keep();
        return 0;
    }
    let_go(stream);
    if let Some(first) = first {
        first.unlock();
    }
    1
}

/// # Safety
/// As the C library's `funlockfile`. The next thread that locks standard output prints behind this one.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn funlockfile(stream: *mut FILE) {
    if let Some(there) = elsewhere(stream) {
        return there.unlock();
    }
    if stream_memory::common_name_of(stream).is_some() {
        flush_output();
    }
    // SAFETY: forwards the caller's argument.
    unsafe { crate::real!(funlockfile: fn(*mut FILE))(stream) };
    let_go(stream);
    if let Some(first) = first_of(stream) {
        first.unlock();
    }
}
