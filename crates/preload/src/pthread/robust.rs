//! Robust mutexes: a thread that locks one after its holder has ended gets `EOWNERDEAD`.
//!
//! The state of such a mutex is in its own memory, where the C library would have the number of its holder. Only
//! holders write it, so it moves between nodes like the data that the mutex protects.

use super::mutex_kind::{kind_bits, kind_of};
use crate::private_stack::uninterrupted;
use gondwana_node::{MutexKind, Node, ProcessChange};
use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// The offset of a mutex's holder in the C library's structure, used for the state instead.
const STATE_OFFSET: usize = 8;
/// A holder has ended: the next thread to lock the mutex gets `EOWNERDEAD`, or has got it and has not called
/// `pthread_mutex_consistent` yet.
const INCONSISTENT: c_int = c_int::MAX;
/// The mutex was unlocked without `pthread_mutex_consistent`: it cannot be locked any more.
const NOT_RECOVERABLE: c_int = c_int::MAX - 1;

/// The bit of a mutex's kind for robust mutexes.
const ROBUST: c_int = 16;

/// The program has made a robust mutex. Until then, locking does not read the memory of mutexes.
static EXPECTED: AtomicBool = AtomicBool::new(false);
/// This node has announced that to all nodes.
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The robust mutexes that the calling thread holds, as often as it has locked them. It is used after other
    /// thread-local variables are destroyed, so it has no destructor: a thread that ends takes its contents.
    static HELD: RefCell<ManuallyDrop<Vec<usize>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

fn with_held<R>(call: impl FnOnce(&mut Vec<usize>) -> R) -> R {
    uninterrupted(|| HELD.with_borrow_mut(|held| call(held)))
}

/// This process is to expect robust mutexes.
pub(crate) fn expect() -> c_int {
    EXPECTED.store(true, Ordering::Relaxed);
    0
}

/// Called before a mutex is initialised: if it is robust, announces to all nodes that there are robust mutexes.
///
/// # Safety
/// The attributes are null or valid.
pub(super) unsafe fn announce(
    node: &'static Node,
    attributes: *const pthread_mutexattr_t,
) -> Result<(), i32> {
    let mut robust = libc::PTHREAD_MUTEX_STALLED;
    // SAFETY: the caller's promise; the result is a private variable.
    let wanted = !attributes.is_null()
        && unsafe { libc::pthread_mutexattr_getrobust(attributes, &mut robust) } == 0
        && robust == libc::PTHREAD_MUTEX_ROBUST;
    if wanted && !ANNOUNCED.load(Ordering::Relaxed) {
        expect();
        node.change_elsewhere(ProcessChange::ExpectRobustMutexes)?;
        ANNOUNCED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// True if there may be robust mutexes.
#[inline]
pub(super) fn are_expected() -> bool {
    EXPECTED.load(Ordering::Relaxed)
}

#[inline]
fn is_robust(mutex: *const pthread_mutex_t) -> bool {
    are_expected() && kind_bits(mutex) & ROBUST != 0
}

fn state(mutex: *mut pthread_mutex_t) -> *mut c_int {
    mutex.cast::<u8>().wrapping_add(STATE_OFFSET).cast()
}

/// Called after the calling thread has locked a mutex: whether it may use the protected data.
///
/// # Errors
/// `EOWNERDEAD`: it may repair the data. `ENOTRECOVERABLE`: it does not hold the mutex.
#[inline]
pub(super) fn locked(node: &'static Node, mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    if is_robust(mutex) { look(node, mutex) } else { Ok(()) }
}

fn look(node: &'static Node, mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    let again = with_held(|held| {
        let again = held.contains(&(mutex as usize));
        held.push(mutex as usize);
        again
    });
    // SAFETY: the calling thread holds the mutex, which is longer than this.
    match unsafe { state(mutex).read() } {
        _ if again => Ok(()),
        INCONSISTENT => Err(libc::EOWNERDEAD),
        NOT_RECOVERABLE => {
            forget(mutex);
            node.mutex_unlock(mutex as usize, kind_of(mutex))?;
            Err(libc::ENOTRECOVERABLE)
        }
        _ => Ok(()),
    }
}

/// Removes one lock of a mutex from those of the calling thread; returns how many there were.
fn forget(mutex: *mut pthread_mutex_t) -> usize {
    with_held(|held| {
        let locks = held.iter().filter(|&&other| other == mutex as usize).count();
        if let Some(last) = held.iter().rposition(|&other| other == mutex as usize) {
            held.swap_remove(last);
        }
        locks
    })
}

/// Called before the calling thread unlocks a mutex: an inconsistent mutex becomes not recoverable.
///
/// # Errors
/// `EPERM`: it does not hold the mutex.
#[inline]
pub(super) fn unlocking(mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    if is_robust(mutex) { leave(mutex) } else { Ok(()) }
}

fn leave(mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    match forget(mutex) {
        0 => return Err(libc::EPERM),
        // SAFETY: the calling thread holds the mutex, which is longer than this.
        1 => unsafe {
            if state(mutex).read() == INCONSISTENT {
                state(mutex).write(NOT_RECOVERABLE);
            }
        },
        _ => {}
    }
    Ok(())
}

/// The result of `pthread_mutex_trylock` for a locked mutex.
pub(super) fn busy(mutex: *mut pthread_mutex_t) -> i32 {
    let is_mine = || with_held(|held| held.contains(&(mutex as usize)));
    let checks = || kind_of(mutex)() == MutexKind::ErrorCheck;
    if is_robust(mutex) && checks() && is_mine() { libc::EDEADLK } else { libc::EBUSY }
}

/// `pthread_mutex_consistent`.
///
/// # Errors
/// `EINVAL`: the mutex is not inconsistent.
pub(super) fn mended(mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    // SAFETY: the caller of the wrapped function passes a mutex that it holds.
    unsafe {
        if !is_robust(mutex) || state(mutex).read() != INCONSISTENT {
            return Err(libc::EINVAL);
        }
        state(mutex).write(0);
    }
    Ok(())
}

/// Called when the calling thread ends: unlocks the robust mutexes that it holds.
pub(super) fn thread_ends(node: &'static Node) {
    for mutex in with_held(std::mem::take) {
        let mutex = mutex as *mut pthread_mutex_t;
        // A recursive mutex is listed as often as it was locked.
        if is_robust(mutex) && node.holds_mutex(mutex as usize) {
            // SAFETY: the calling thread holds the mutex.
            unsafe { state(mutex).write(INCONSISTENT) };
            // The thread holds it, so this cannot fail.
            let _ = node.mutex_unlock(mutex as usize, kind_of(mutex));
        }
    }
}
