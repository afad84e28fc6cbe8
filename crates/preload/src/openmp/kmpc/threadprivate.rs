//! `threadprivate` variables that are no thread-local ones (`-fnoopenmp-use-tls`): the program asks for the calling thread's copy of one.
//!
//! The variable itself is the main thread's copy. Those of other threads begin with what it held when a thread first asked for one.
//! All are in shared memory, so that `copyin` finds them.

use super::Place;
use crate::openmp::sync;
use gondwana_node::{Node, Thread};
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::collections::HashMap;

thread_local! {
    /// The calling thread's copies, by the variables' addresses.
    static COPIES: RefCell<HashMap<usize, usize>> = RefCell::default();
}

/// The calling thread's copy of a variable with so many bytes. The compiler has made the pointer at `initial`, in shared memory, for this
/// runtime's use; it is null at first.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_threadprivate_cached(
    _place: Place,
    _thread: c_int,
    variable: *mut c_void,
    bytes: usize,
    initial: *mut *mut u8,
) -> *mut c_void {
    if let Some(copy) = COPIES.with_borrow(|copies| copies.get(&(variable as usize)).copied()) {
        return copy as *mut c_void;
    }
    let copied = |from: *const u8| {
        let place = sync::allocate(bytes.max(1), align_of::<u128>());
        // SAFETY: the block was made for so many bytes, which the variable and what it held at first have.
        unsafe { std::ptr::copy_nonoverlapping(from, place, bytes) };
        place
    };
    // SAFETY: the pointer is used with its lock held.
    let initial = unsafe {
        sync::lock(initial);
        if (*initial).is_null() {
            initial.write(copied(variable.cast()));
        }
        let found = *initial;
        sync::unlock(initial);
        found
    };
    let is_main = Node::current().is_none_or(|node| Thread::current(node).id == node.main_thread());
    let copy = if is_main { variable } else { copied(initial).cast() };
    COPIES.with_borrow_mut(|copies| copies.insert(variable as usize, copy as usize));
    copy
}

/// The calling thread, which is not the main thread, is about to end.
pub(crate) fn end() {
    for (_, copy) in COPIES.take() {
        sync::discard(copy as *mut u8);
    }
}
