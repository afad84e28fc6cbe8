//! Read-write locks.

use super::between_processes::{is_in_common_file, is_said_of_lock};
use super::{code, deadline};
use crate::exit::{flush_before_unlock, has_output_for_next};
use gondwana_node::RwOperation::{Read, Write};
use libc::{c_int, c_uint, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

/// Where the C library keeps the kind in a lock, by its `struct __pthread_rwlock_arch_t`, and the one by which readers wait for writers.
const KIND: usize = 48;
const WRITER_NONRECURSIVE: c_uint = 2;

/// A function that tells whether readers of a lock wait for writers that wait. `lock` is the program's pointer.
fn prefers_writers(lock: *const pthread_rwlock_t) -> impl Fn() -> bool {
    // SAFETY: the caller of the wrapped function passes a lock, which is longer.
    move || unsafe { lock.byte_add(KIND).cast::<c_uint>().read_volatile() } == WRITER_NONRECURSIVE
}

crate::shared_or_real! {
    fn pthread_rwlock_init(lock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t) -> c_int = |node| {
        // SAFETY: the caller passes null or valid attributes.
        unsafe {
            if !is_in_common_file(node, lock as usize) || !is_said_of_lock(attributes) {
                node.rwlock_forget(lock as usize);
            }
            // The C library fills in the kind.
            crate::real!(pthread_rwlock_init: fn(*mut pthread_rwlock_t, *const pthread_rwlockattr_t) -> c_int)(
                lock, attributes,
            )
        }
    };
    fn pthread_rwlock_destroy(lock: *mut pthread_rwlock_t) -> c_int = |node| {
        node.rwlock_forget(lock as usize);
        0
    };
    fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int =
        at_hand |node| node.rwlock_at_hand(lock as usize, Read),
        else |node| code(node.rwlock(lock as usize, Read, false, None, prefers_writers(lock)));
    fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int =
        at_hand |node| node.rwlock_at_hand(lock as usize, Write),
        else |node| code(node.rwlock(lock as usize, Write, false, None, prefers_writers(lock)));
    fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int = |node| code(node.rwlock(lock as usize, Read, true, None, prefers_writers(lock)));
    fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int = |node| code(node.rwlock(lock as usize, Write, true, None, prefers_writers(lock)));
    fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int =
        at_hand |node| !has_output_for_next(node) && node.rwlock_unlock_at_hand(lock as usize),
        else |node| {
        flush_before_unlock(node);
        code(node.rwlock_unlock(lock as usize))
    };
    fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int = |node|
        code(deadline(libc::CLOCK_REALTIME, time).and_then(|until| node.rwlock(lock as usize, Read, false, Some(until), prefers_writers(lock))));
    fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int = |node|
        code(deadline(libc::CLOCK_REALTIME, time).and_then(|until| node.rwlock(lock as usize, Write, false, Some(until), prefers_writers(lock))));
    fn pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int = |node|
        code(deadline(clock, time).and_then(|until| node.rwlock(lock as usize, Read, false, Some(until), prefers_writers(lock))));
    fn pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec) -> c_int = |node|
        code(deadline(clock, time).and_then(|until| node.rwlock(lock as usize, Write, false, Some(until), prefers_writers(lock))));
}
