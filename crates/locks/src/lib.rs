//! Taking locks, and the meaning of a poisoned one.
//!
//! All crates take locks by these functions, whether the lock is poisoned or not. A panic in a node ends the process
//! from the panic hook, before anything unwinds and so before a lock is poisoned (decision record 0056). A lock can only
//! be poisoned where a panic costs one task and not the process: in the monitor of a node, in a thread of the launcher, in a
//! function for C in a process without a node. There the other threads continue with the data as they are.
//!
//! The one exception is the lock of a node's protocol machines: a machine that stopped within an event cannot continue, and
//! the node ends the run.
#![forbid(unsafe_code)]

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::time::Duration;

/// Locks a mutex.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex if no thread holds it.
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Locks for reading.
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits while a condition holds.
pub fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    condvar.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification, with a timeout.
pub fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
}

/// Waits while a condition holds, with a timeout.
pub fn wait_timeout_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Duration,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout_while(guard, timeout, condition).unwrap_or_else(PoisonError::into_inner).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poisoned_lock_is_taken_as_it_is() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(1));
        let failed = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let (mut one, mut other) = (lock(&mutex), write(&shared));
                (*one, *other) = (2, 2);
                panic!("while it holds the locks");
            });
            holder.join().is_err()
        });
        assert!(failed && mutex.is_poisoned() && shared.is_poisoned());
        assert_eq!((*lock(&mutex), *read(&shared)), (2, 2));
        assert_eq!(*write(&shared), 2);
        let guard = try_lock(&mutex).unwrap();
        assert!(try_lock(&mutex).is_none());
        let condvar = Condvar::new();
        let guard = wait_timeout(&condvar, guard, Duration::ZERO);
        let guard = wait_timeout_while(&condvar, guard, Duration::ZERO, |_| true);
        assert_eq!(*wait_while(&condvar, guard, |_| false), 2);
    }
}
