//! Locks, and what a poisoned one means.
//!
//! A panic ends the process from the panic hook, before anything unwinds and before a lock is poisoned
//! ([`defect`](crate::defect)). Only the monitor's work is tried and unwinds: the monitor then goes on with what was locked.
//! So the node takes every lock by these functions, poisoned or not. The one exception is the lock of
//! [`Core`](crate::core::Core): a protocol machine that is half way through an event cannot go on, and ends the run.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks a mutex.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while a condition holds.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    condvar.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
}
