//! Condition variables.

use super::mutex::unlock;
use super::mutex_kind::kind_of;
use super::{cancel, code, deadline, robust};
use crate::exit::flush_before_unlock;
use gondwana_node::{MutexKind, Node};
use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use std::time::Instant;

/// Where the C library keeps a condition's flags, among them its clock.
const FLAGS_OFFSET: usize = 36;
const MONOTONIC: u32 = 2;

/// The clock that a condition was initialised with.
///
/// # Safety
/// `cond` points to a condition.
unsafe fn clock(cond: *const pthread_cond_t) -> clockid_t {
    // SAFETY: a condition is longer than this, and aligned for it.
    let flags = unsafe { cond.cast::<u8>().add(FLAGS_OFFSET).cast::<u32>().read_volatile() };
    if flags & MONOTONIC != 0 { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
}

fn wait(
    node: &'static Node,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: Option<Instant>,
) -> c_int {
    flush_before_unlock(node);
    let wait = || {
        robust::unlocking(mutex).and_then(|()| {
            let kind = kind_of(mutex);
            let mut waited = node.cond_wait(cond as usize, mutex as usize, kind, until);
            // Natively a thread may wait with a mutex that it does not hold; it unlocks it, whoever has locked it. Who has may unlock it, too,
            // before this thread waits.
            while waited == Err(libc::EPERM) && kind() == MutexKind::Normal {
                unlock(node, mutex as usize, kind)?;
                node.mutex_lock(mutex as usize, kind, None)?;
                waited = node.cond_wait(cond as usize, mutex as usize, kind, until);
            }
            // However the wait ended, the mutex is locked again unless it could not be unlocked.
            match waited {
                Ok(()) | Err(libc::ETIMEDOUT) => robust::locked(node, mutex).and(waited),
                error => error,
            }
        })
    };
    // A cancelled thread has the mutex again before it ends.
    code(cancel::at_point(wait, |waited| *waited == Err(libc::ETIMEDOUT)))
}

crate::shared_or_real! {
    fn pthread_cond_init(cond: *mut pthread_cond_t, attributes: *const pthread_condattr_t) -> c_int = |_node| {
        // SAFETY: the C library fills in the clock; the object is the caller's.
        unsafe {
            crate::real!(pthread_cond_init: fn(*mut pthread_cond_t, *const pthread_condattr_t) -> c_int)(cond, attributes)
        }
    };
    fn pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int = |_node| 0;
    fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int = |node| code(node.cond_signal(cond as usize, false));
    fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int = |node| code(node.cond_signal(cond as usize, true));
    fn pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int = |node|
        wait(node, cond, mutex, None);
    fn pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int
        // SAFETY: the caller passes a condition.
        = |node| match deadline(unsafe { clock(cond) }, time) {
            Ok(until) => wait(node, cond, mutex, Some(until)),
            Err(error) => error,
        };
    fn pthread_cond_clockwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        time: *const timespec) -> c_int = |node| match deadline(clock, time) {
            Ok(until) => wait(node, cond, mutex, Some(until)),
            Err(error) => error,
        };
}
