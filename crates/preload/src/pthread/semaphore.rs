//! Semaphores. Those in mapped files that processes share, named ones among them, are the C library's: the kernel knows who waits there, and
//! other processes do. A node that has not mapped the file, which is on another computer, has the one that has make the calls.

use super::{cancel, deadline};
use crate::exit::flush_before_unlock;
use crate::io::Buffer;
use crate::io::descriptors::There;
use gondwana_node::{Initialised, Node, Object};
use gondwana_page::to_usize;
use gondwana_sys::Argument;
use libc::{c_int, c_uint, clockid_t, sem_t, timespec};
use std::time::Instant;

/// The initialisation data in the program's memory; the first operation sends it to the manager. For the child of a `fork` it begins as a
/// semaphore of the C library's does.
#[repr(C)]
struct Memory {
    value: u32,
    waiting: u32,
    /// Nonzero if other processes use it.
    shared: u64,
    stamp: u64,
}

const _: () = assert!(size_of::<Memory>() <= size_of::<sem_t>());

/// In the child of a `fork`: these have the values that they had for the run, unless they were initialised again.
pub(crate) fn inherit(semaphores: &[Initialised]) {
    for semaphore in semaphores {
        let memory = to_usize(semaphore.object.0) as *mut Memory;
        // SAFETY: a semaphore in what was shared memory, which the child has a copy of.
        unsafe {
            if (&raw const (*memory).stamp).read_volatile() == semaphore.stamp {
                (&raw mut (*memory).value).write_volatile(semaphore.value);
            }
        }
    }
}

/// A semaphore as it was initialised.
fn of(semaphore: *mut sem_t) -> Initialised {
    // SAFETY: the caller of the wrapped function passes a semaphore, which is longer than this and aligned for it.
    let Memory { value, stamp, .. } = unsafe { semaphore.cast::<Memory>().read_volatile() };
    Initialised { object: Object(semaphore as u64), value, stamp }
}

fn wait(node: &'static Node, semaphore: *mut sem_t, until: Option<Instant>) -> Result<(), i32> {
    cancel::at_point(
        || node.semaphore_wait(of(semaphore), until),
        // Without a time, nothing else ends a wait.
        |waited| matches!(waited, Err(libc::ETIMEDOUT | libc::EINTR)),
    )
}

/// The convention of semaphores: -1 with `errno`.
fn result(result: Result<(), i32>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            crate::errno::set(error);
            -1
        }
    }
}

/// True if a semaphore is in a mapped file.
fn is_in_file(node: &Node, semaphore: *mut sem_t) -> bool {
    node.mapped_files().node_of(semaphore as usize).is_some()
}

/// True if a semaphore is the C library's: other processes can use it.
fn is_native(node: &Node, semaphore: *mut sem_t) -> bool {
    is_in_file(node, semaphore)
        // SAFETY: as for `of`.
        && unsafe { (&raw const (*semaphore.cast::<Memory>()).shared).read_volatile() } != 0
}

/// The node that makes calls on such a semaphore, if it is not this one.
fn elsewhere(node: &'static Node, semaphore: *mut sem_t) -> Option<There> {
    let owner = node.mapped_files().out_of_reach(semaphore as usize)?;
    Some(There { node, owner })
}

/// Waits for such a semaphore, which is in no page: what the thread that has posted it wrote is seen afterwards.
fn natively(node: &'static Node, wait: impl FnOnce() -> c_int) -> c_int {
    let failed = cancel::at_point_if(true, wait);
    if failed == 0 {
        node.acquire(None);
    }
    failed
}

/// The C library's function of a name, on the node that has the semaphore, with memory that it uses.
macro_rules! real {
    ($node:ident, $name:ident($semaphore:expr => $first:ty $(, $argument:expr => $type:ty)*) $($buffer:expr)?) => {
        match elsewhere($node, $semaphore) {
            Some(there) => {
                there.call(stringify!($name), &[$semaphore.word() $(, $argument.word())*], &[$($buffer)?])
            }
            // SAFETY: forwards the caller's arguments.
            None => unsafe { crate::real!($name: fn($first $(, $type)*) -> c_int)($semaphore $(, $argument)*) },
        }
    };
}

crate::shared_or_real! {
    fn sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int = |node| {
        if shared != 0 && is_in_file(node, semaphore) {
            return real!(node, sem_init(semaphore => *mut sem_t, shared => c_int, value => c_uint));
        }
        if value > i32::MAX as u32 {
            result(Err(libc::EINVAL))
        } else {
            // SAFETY: the object is the caller's, and longer than this.
            unsafe { semaphore.cast::<Memory>().write(Memory { value, waiting: 0, shared: 0, stamp: node.stamp() }) };
            0
        }
    };
    fn sem_destroy(_semaphore: *mut sem_t) -> c_int = |_node| 0;
    fn sem_post(semaphore: *mut sem_t) -> c_int = |node| {
        flush_before_unlock(node);
        if is_native(node, semaphore) {
            // Who waits learns of it from the kernel, and no message of this node follows.
            node.release_and_wait();
            return real!(node, sem_post(semaphore => *mut sem_t));
        }
        result(node.semaphore_post(of(semaphore)))
    };
    fn sem_wait(semaphore: *mut sem_t) -> c_int = |node| {
        if is_native(node, semaphore) {
            return natively(node, || real!(node, sem_wait(semaphore => *mut sem_t)));
        }
        result(wait(node, semaphore, None))
    };
    fn sem_trywait(semaphore: *mut sem_t) -> c_int = |node| {
        if is_native(node, semaphore) {
            return natively(node, || real!(node, sem_trywait(semaphore => *mut sem_t)));
        }
        result(node.semaphore_try_wait(of(semaphore)))
    };
    fn sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int = |node| {
        if is_native(node, semaphore) {
            // A private copy: the kernel reads it.
            // SAFETY: the caller passes a time.
            let copy = unsafe { *time };
            let time = &raw const copy;
            return natively(node, || {
                real!(node, sem_timedwait(semaphore => *mut sem_t, time => *const timespec) Buffer::value(time))
            });
        }
        timed_wait(node, semaphore, libc::CLOCK_REALTIME, time)
    };
    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int = |node| {
        if is_native(node, semaphore) {
            // SAFETY: as above.
            let copy = unsafe { *time };
            let time = &raw const copy;
            return natively(node, || {
                real!(node, sem_clockwait(semaphore => *mut sem_t, clock => clockid_t, time => *const timespec)
                    Buffer::value(time))
            });
        }
        timed_wait(node, semaphore, clock, time)
    };
    fn sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int = |node| {
        if is_native(node, semaphore) {
            return real!(node, sem_getvalue(semaphore => *mut sem_t, value => *mut c_int) Buffer::result(value));
        }
        let now = node.semaphore_value(of(semaphore));
        // SAFETY: the caller passes a place for the value.
        unsafe { *value = now };
        0
    };
}

fn timed_wait(node: &'static Node, semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int {
    if !super::is_supported(clock) {
        return result(Err(libc::EINVAL));
    }
    // Acts on a request even if the semaphore is free.
    // SAFETY: has no preconditions.
    unsafe { cancel::pthread_testcancel() };
    let at_once = node.semaphore_try_wait(of(semaphore));
    result(at_once.or_else(|_| deadline(clock, time).and_then(|until| wait(node, semaphore, Some(until)))))
}
