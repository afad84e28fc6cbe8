//! Robust mutexes: who locks one after a thread that has ended with it is told.
//!
//! What has become of such a mutex is in its own memory, where the C library would have the number of its holder. Only
//! holders write it, so it travels between nodes like the data that the mutex protects.

use super::mutex_kind::{kind_bits, kind_of};
use crate::private_stack::uninterrupted;
use gondwana_node::{MutexKind, Node, ProcessChange};
use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the C library keeps a mutex's holder, and what it writes there instead.
const STATE_OFFSET: usize = 8;
/// The next to lock the mutex is told that a holder has ended, or has been told and has not mended the data yet.
const INCONSISTENT: c_int = c_int::MAX;
/// Nobody has mended the data: the mutex is of no more use.
const NOT_RECOVERABLE: c_int = c_int::MAX - 1;

/// The bit of a mutex's kind that says that it is robust.
const ROBUST: c_int = 16;

/// The program has made a robust mutex. Until then, locking does not look at the memory of mutexes.
static EXPECTED: AtomicBool = AtomicBool::new(false);
/// All nodes know that from this one.
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The robust mutexes that the calling thread holds, as often as it has locked them. It is needed when other
    /// variables of the thread are gone already, so it has no destructor: a thread that ends takes its contents.
    static HELD: RefCell<ManuallyDrop<Vec<usize>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

fn with_held<R>(call: impl FnOnce(&mut Vec<usize>) -> R) -> R {
    uninterrupted(|| HELD.with_borrow_mut(|held| call(held)))
}

/// This process is to expect robust mutexes.
pub fn expect() -> c_int {
    EXPECTED.store(true, Ordering::Relaxed);
    0
}

/// Before a mutex is initialised: if it is to be robust, all nodes learn that there are such.
///
/// # Safety
/// The attributes are null or valid.
pub unsafe fn announce(node: &'static Node, attributes: *const pthread_mutexattr_t) -> Result<(), i32> {
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
pub fn are_expected() -> bool {
    EXPECTED.load(Ordering::Relaxed)
}

#[inline]
fn is_robust(mutex: *const pthread_mutex_t) -> bool {
    are_expected() && kind_bits(mutex) & ROBUST != 0
}

fn state(mutex: *mut pthread_mutex_t) -> *mut c_int {
    mutex.cast::<u8>().wrapping_add(STATE_OFFSET).cast()
}

/// After the calling thread has locked a mutex: whether it may use what the mutex protects.
///
/// # Errors
/// `EOWNERDEAD`: it may mend it. `ENOTRECOVERABLE`: it may not, and does not hold the mutex.
#[inline]
pub fn locked(node: &'static Node, mutex: *mut pthread_mutex_t) -> Result<(), i32> {
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

/// Removes one lock of a mutex from those of the calling thread: how many there were.
fn forget(mutex: *mut pthread_mutex_t) -> usize {
    with_held(|held| {
        let locks = held.iter().filter(|&&other| other == mutex as usize).count();
        if let Some(last) = held.iter().rposition(|&other| other == mutex as usize) {
            held.swap_remove(last);
        }
        locks
    })
}

/// Before the calling thread unlocks a mutex: data that it was to mend and has not are lost.
///
/// # Errors
/// `EPERM`: it does not hold the mutex.
#[inline]
pub fn unlocking(mutex: *mut pthread_mutex_t) -> Result<(), i32> {
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

/// What `pthread_mutex_trylock` says of a mutex that is locked.
pub fn busy(mutex: *mut pthread_mutex_t) -> i32 {
    let is_mine = || with_held(|held| held.contains(&(mutex as usize)));
    let checks = || kind_of(mutex)() == MutexKind::ErrorCheck;
    if is_robust(mutex) && checks() && is_mine() { libc::EDEADLK } else { libc::EBUSY }
}

/// `pthread_mutex_consistent`.
///
/// # Errors
/// `EINVAL`: there is nothing to mend.
pub fn mended(mutex: *mut pthread_mutex_t) -> Result<(), i32> {
    // SAFETY: the caller of the wrapped function passes a mutex that it holds.
    unsafe {
        if !is_robust(mutex) || state(mutex).read() != INCONSISTENT {
            return Err(libc::EINVAL);
        }
        state(mutex).write(0);
    }
    Ok(())
}

/// The calling thread ends: the robust mutexes that it holds go to others.
pub fn thread_ends(node: &'static Node) {
    for mutex in with_held(std::mem::take) {
        let mutex = mutex as *mut pthread_mutex_t;
        // A recursive mutex is here as often as it was locked.
        if is_robust(mutex) && node.holds_mutex(mutex as usize) {
            // SAFETY: the calling thread holds the mutex.
            unsafe { state(mutex).write(INCONSISTENT) };
            // It holds it, so that nothing can go wrong.
            let _ = node.mutex_unlock(mutex as usize, kind_of(mutex));
        }
    }
}
