//! Runs functions on a thread's private stack, and without interruptions.
//!
//! [`crate::handler_stack`] makes the stack and registers it with the kernel.

use crate::stack::on_stack;
use gondwana_node::{Node, Thread};
use libc::c_void;
use std::cell::Cell;

thread_local! {
    /// The part of the calling thread's private stack that is registered with the kernel: its ends, equal if there is
    /// none.
    pub static PART: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// Where the thread left the program's stack for its private one; 0 while it is not there by [`on_private_stack`].
    pub static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Calls a function on the thread's private stack, unless the present stack is private already. A handler that
/// interrupts it runs below, because the kernel detects that the stack is in use.
pub(crate) fn on_private_stack(mut call: &mut dyn FnMut()) {
    let here = &raw mut call;
    let (_, top) = PART.get();
    if top != 0 && Node::current().is_some_and(|node| node.is_shared(here as usize)) {
        let before = LEFT.get();
        // SAFETY: a thread on its own stack is not on its private one.
        unsafe { on_stack(enter, here.cast(), top, LEFT.with(Cell::as_ptr)) };
        LEFT.set(before);
    } else {
        call();
    }
}

/// Runs a function that holds a lock, without interruptions by signal handlers or by faults on the caller's stack,
/// which could wait for that lock.
pub(crate) fn uninterrupted<R>(call: impl FnOnce() -> R) -> R {
    let mut call = Some(call);
    let mut result = None;
    on_private_stack(&mut || result = call.take().map(Thread::in_runtime));
    result.expect("the function is called")
}

/// Calls the function that its argument points to, in the form for [`on_stack`].
///
/// # Safety
/// The argument is a pointer to a `&mut dyn FnMut()` that outlives the call.
pub(crate) unsafe extern "C" fn enter(call: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { (*call.cast::<&mut dyn FnMut()>())() };
    std::ptr::null_mut()
}
