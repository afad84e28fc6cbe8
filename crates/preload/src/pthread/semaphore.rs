//! Unnamed semaphores. Named ones are the C library's, of one node.

use super::{cancel, deadline};
use crate::exit::flush_before_unlock;
use gondwana_node::{Initialised, Node, Object};
use libc::{c_char, c_int, c_uint, clockid_t, sem_t, timespec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The initialisation data in the program's memory; the first operation sends it to the manager.
#[repr(C)]
struct Memory {
    value: u32,
    stamp: u64,
}

/// A semaphore as it was initialised.
fn of(semaphore: *mut sem_t) -> Initialised {
    // SAFETY: the caller of the wrapped function passes a semaphore, which is longer than this and aligned for it.
    let Memory { value, stamp } = unsafe { semaphore.cast::<Memory>().read_volatile() };
    Initialised { object: Object(semaphore as u64), value, stamp }
}

fn wait(node: &'static Node, semaphore: *mut sem_t, until: Option<Instant>) -> Result<(), i32> {
    cancel::at_point(
        || node.semaphore_wait(of(semaphore), until),
        // Without a time, nothing else ends a wait.
        |waited| *waited == Err(libc::ETIMEDOUT),
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

crate::shared_or_real! {
    fn sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int = |node| {
        super::note_process_shared(node, semaphore as usize, || shared != 0);
        if value > i32::MAX as u32 {
            result(Err(libc::EINVAL))
        } else {
            // SAFETY: the object is the caller's, and longer than this.
            unsafe { semaphore.cast::<Memory>().write(Memory { value, stamp: node.stamp() }) };
            0
        }
    };
    fn sem_destroy(_semaphore: *mut sem_t) -> c_int = |_node| 0;
    fn sem_post(semaphore: *mut sem_t) -> c_int = |node| {
        flush_before_unlock(node);
        result(node.semaphore_post(of(semaphore)))
    };
    fn sem_wait(semaphore: *mut sem_t) -> c_int = |node| result(wait(node, semaphore, None));
    fn sem_trywait(semaphore: *mut sem_t) -> c_int = |node| result(node.semaphore_try_wait(of(semaphore)));
    fn sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int = |node| result(
        node.semaphore_try_wait(of(semaphore)).or_else(|_| {
            deadline(libc::CLOCK_REALTIME, time).and_then(|until| wait(node, semaphore, Some(until)))
        }));
    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int = |node| result(
        node.semaphore_try_wait(of(semaphore)).or_else(|_| {
            deadline(clock, time).and_then(|until| wait(node, semaphore, Some(until)))
        }));
    fn sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int = |node| {
        let now = node.semaphore_value(of(semaphore));
        // SAFETY: the caller passes a place for the value.
        unsafe { *value = now };
        0
    };
}

/// # Safety
/// As the C library's `sem_open`. Arguments that the caller did not pass have arbitrary values, which it ignores.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sem_open(
    name: *const c_char,
    flags: c_int,
    mode: libc::mode_t,
    value: c_uint,
) -> *mut sem_t {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if let Some(node) = Node::current()
        && !TOLD.swap(true, Ordering::Relaxed)
    {
        node.refuse("sem_open(): threads of other nodes cannot use a named semaphore; use sem_init()");
    }
    // SAFETY: forwards the caller's arguments.
    unsafe {
        crate::real!(sem_open: fn(*const c_char, c_int, libc::mode_t, c_uint) -> *mut sem_t)(
            name, flags, mode, value,
        )
    }
}
