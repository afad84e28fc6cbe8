//! Keeps `fork` from copying this library's records while another thread changes them.

use gondwana_locks::{read, write};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Read-locked by threads that change records, write-locked by a thread that forks.
static RECORDS: RwLock<()> = RwLock::new(());

thread_local! {
    /// The write lock of a thread that forks.
    static FORKING: Cell<Option<ManuallyDrop<RwLockWriteGuard<'static, ()>>>> = const { Cell::new(None) };
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
}

/// Delays forks of other threads. A fork of the calling thread is not delayed: programs may allocate and free in fork
/// handlers.
pub(crate) fn keep_waiting() -> Option<RwLockReadGuard<'static, ()>> {
    (!IS_FORKING.get()).then(|| read(&RECORDS))
}

/// Registers handlers for forks.
pub(crate) fn begin() {
    // SAFETY: the functions stay where they are: this library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

unsafe extern "C" fn before() {
    let guard = write(&RECORDS);
    IS_FORKING.set(true);
    FORKING.set(Some(ManuallyDrop::new(guard)));
}

unsafe extern "C" fn after() {
    IS_FORKING.set(false);
    if let Some(guard) = FORKING.take() {
        drop(ManuallyDrop::into_inner(guard));
    }
}
