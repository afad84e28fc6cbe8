//! Mutexes and spin locks: tokens that stay at the node that used them last.

use super::between_processes::{is_in_common_file, is_said_of_mutex};
use super::mutex_kind::kind_of;
use super::{code, deadline, robust};
use crate::exit::{flush_before_unlock, has_output_for_next};
use crate::io::descriptors::There;
use gondwana_node::{MutexKind, Node};
use gondwana_sys::Argument;
use libc::{c_int, c_void, clockid_t, pthread_mutex_t, pthread_mutexattr_t, pthread_spinlock_t, timespec};
use std::time::Instant;

/// `pthread_mutex_lock`, or the timed forms of it.
#[inline]
fn lock(node: &'static Node, mutex: *mut pthread_mutex_t, until: Option<Instant>) -> Result<(), i32> {
    node.mutex_lock(mutex as usize, kind_of(mutex), until)?;
    robust::locked(node, mutex)
}

/// `pthread_mutex_trylock`.
#[inline]
fn try_lock(node: &'static Node, mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    match node.mutex_try_lock(mutex as usize, kind_of(mutex)) {
        Ok(()) => robust::locked(node, mutex),
        Err(libc::EBUSY) => Err(robust::busy(mutex)),
        error => error,
    }
}

/// `pthread_mutex_unlock`. As natively, a thread may unlock a mutex of the normal kind that another one has locked, on whatever node.
pub(super) fn unlock(node: &'static Node, mutex: usize, kind: impl Fn() -> MutexKind) -> Result<(), i32> {
    match node.mutex_unlock(mutex, &kind) {
        Err(libc::EPERM) if kind() == MutexKind::Normal => {
            node.release_and_wait();
            let unlocks = |owner| {
                let there = There { node, owner };
                there.call::<c_int>("__gondwana_unlock_mutex", &[(mutex as *const c_void).word()], &[]) == 1
            };
            // Nobody holds it, if no node does: the C library makes no error of that.
            node.others().map(|other| other.index()).any(unlocks);
            Ok(())
        }
        result => result,
    }
}

/// For other nodes: unlocks a mutex that a thread of this node holds; 0 if none does.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __gondwana_unlock_mutex(mutex: usize) -> c_int {
    c_int::from(Node::current().is_some_and(|node| node.mutex_unlock_for_another(mutex)))
}

/// Locks unless the time is over first. A mutex that is free is locked even then.
fn lock_until(
    node: &'static Node,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> Result<(), i32> {
    if !super::is_supported(clock) {
        return Err(libc::EINVAL);
    }
    match try_lock(node, mutex) {
        Err(libc::EBUSY) => lock(node, mutex, Some(deadline(clock, time)?)),
        result => result,
    }
}

crate::shared_or_real! {
    fn pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t) -> c_int = |node| {
        // SAFETY: the caller passes null or valid attributes.
        let is_between = || unsafe { is_said_of_mutex(attributes) };
        if is_in_common_file(node, mutex as usize) && is_between() {
            // SAFETY: forwards the caller's arguments.
            return unsafe {
                crate::real!(pthread_mutex_init: fn(*mut pthread_mutex_t, *const pthread_mutexattr_t) -> c_int)(
                    mutex, attributes,
                )
            };
        }
        // SAFETY: the caller passes null or valid attributes.
        if let Err(error) = unsafe { robust::announce(node, attributes) } {
            return error;
        }
        super::note_process_shared(node, mutex as usize, is_between);
        // SAFETY: the C library fills in the kind; the object is the caller's.
        unsafe {
            node.mutex_init(mutex as usize);
            crate::real!(pthread_mutex_init: fn(*mut pthread_mutex_t, *const pthread_mutexattr_t) -> c_int)(
                mutex, attributes,
            )
        }
    };
    fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int = |node| code(node.mutex_destroy(mutex as usize));
    fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int =
        at_hand |node| !robust::are_expected() && node.mutex_lock_at_hand(mutex as usize),
        else |node| code(lock(node, mutex, None));
    fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int = |node| code(try_lock(node, mutex));
    fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int =
        at_hand |node| !robust::are_expected()
            && !has_output_for_next(node)
            && node.mutex_unlock_at_hand(mutex as usize),
        else |node| {
            flush_before_unlock(node);
            code(robust::unlocking(mutex).and_then(|()| unlock(node, mutex as usize, kind_of(mutex))))
        };
    fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = |node|
        code(lock_until(node, mutex, libc::CLOCK_REALTIME, time));
    fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int = |node|
        code(lock_until(node, mutex, clock, time));
    fn pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int = |_node| code(robust::mended(mutex));

    fn pthread_spin_init(lock: *mut pthread_spinlock_t, shared: c_int) -> c_int = |node| {
        if is_in_common_file(node, lock as usize) {
            // SAFETY: forwards the caller's arguments.
            return unsafe {
                crate::real!(pthread_spin_init: fn(*mut pthread_spinlock_t, c_int) -> c_int)(lock, shared)
            };
        }
        node.mutex_init(lock as usize);
        0
    };
    fn pthread_spin_destroy(lock: *mut pthread_spinlock_t) -> c_int = |node| code(node.mutex_destroy(lock as usize));
    fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int = |node|
        code(node.mutex_lock(lock as usize, || MutexKind::Normal, None));
    fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int = |node|
        code(node.mutex_try_lock(lock as usize, || MutexKind::Normal));
    fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> c_int = |node| {
        flush_before_unlock(node);
        code(unlock(node, lock as usize, || MutexKind::Normal))
    };
}
