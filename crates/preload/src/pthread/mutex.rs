//! Mutexes and spin locks: tokens that stay at the node that used them last.

use super::{code, deadline};
use crate::exit::flush_before_unlock;
use gondwana_node::{MutexKind, Node};
use libc::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, pthread_spinlock_t, timespec};

/// Where the C library keeps a mutex's kind; initialisation and static initialisers write it there.
const KIND_OFFSET: usize = 16;

/// Reads, when it is asked for, the kind that the memory of a mutex holds. `mutex` is what the program passed as a
/// mutex.
pub fn kind_of(mutex: *const pthread_mutex_t) -> impl Fn() -> MutexKind + Copy {
    move || {
        // SAFETY: the caller of the wrapped function passes a mutex, which is longer than this and aligned for it.
        match unsafe { mutex.cast::<u8>().add(KIND_OFFSET).cast::<c_int>().read_volatile() } & 3 {
            libc::PTHREAD_MUTEX_RECURSIVE => MutexKind::Recursive,
            libc::PTHREAD_MUTEX_ERRORCHECK => MutexKind::ErrorCheck,
            _ => MutexKind::Normal,
        }
    }
}

/// True if whoever locks the mutex next is to be told that a thread has ended with it.
///
/// # Safety
/// The attributes are null or valid.
unsafe fn is_robust(attributes: *const pthread_mutexattr_t) -> bool {
    let mut robust = libc::PTHREAD_MUTEX_STALLED;
    // SAFETY: the caller's promise; the result is a private variable.
    !attributes.is_null()
        && unsafe { libc::pthread_mutexattr_getrobust(attributes, &mut robust) } == 0
        && robust == libc::PTHREAD_MUTEX_ROBUST
}

/// Locks unless the time is over first. A mutex that is free is locked even then.
fn lock_until(
    node: &'static Node,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> Result<(), i32> {
    match node.mutex_try_lock(mutex as usize, kind_of(mutex)) {
        Err(libc::EBUSY) => node.mutex_lock(mutex as usize, kind_of(mutex), Some(deadline(clock, time)?)),
        result => result,
    }
}

crate::shared_or_real! {
    fn pthread_mutex_init(mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t) -> c_int = |node| {
        // SAFETY: the caller passes null or valid attributes.
        if unsafe { is_robust(attributes) } {
            node.refuse("a robust mutex: a thread that ends with it would leave it locked for ever; run with -n 1");
            return libc::ENOTSUP;
        }
        // SAFETY: the C library fills in the kind; the object is the caller's.
        unsafe {
            node.mutex_init(mutex as usize);
            crate::real!(pthread_mutex_init: fn(*mut pthread_mutex_t, *const pthread_mutexattr_t) -> c_int)(
                mutex, attributes,
            )
        }
    };
    fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int = |node| code(node.mutex_destroy(mutex as usize));
    fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int = |node|
        code(node.mutex_lock(mutex as usize, kind_of(mutex), None));
    fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int = |node|
        code(node.mutex_try_lock(mutex as usize, kind_of(mutex)));
    fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int = |node| {
        flush_before_unlock(node);
        code(node.mutex_unlock(mutex as usize, kind_of(mutex)))
    };
    fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int = |node|
        code(lock_until(node, mutex, libc::CLOCK_REALTIME, time));
    fn pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, time: *const timespec) -> c_int = |node|
        code(lock_until(node, mutex, clock, time));
    fn pthread_mutex_consistent(_mutex: *mut pthread_mutex_t) -> c_int = |_node| libc::EINVAL;

    fn pthread_spin_init(lock: *mut pthread_spinlock_t, _shared: c_int) -> c_int = |node| {
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
        code(node.mutex_unlock(lock as usize, || MutexKind::Normal))
    };
}
