//! Work on the stack that a thread has private to the node, and without interruptions.
//!
//! [`crate::handler_stack`] makes the stack and tells the kernel of it.

use crate::stack::on_stack;
use gondwana_node::{Node, Thread};
use libc::c_void;
use std::cell::Cell;

thread_local! {
    /// The part of the calling thread's private stack that the kernel was told of: its ends, equal if it has none.
    pub static PART: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Calls a function on the thread's private stack, unless the present stack is private already. A handler that
/// interrupts it goes on below, because the kernel sees that the stack is in use.
pub fn on_private_stack(mut call: &mut dyn FnMut()) {
    let here = &raw mut call;
    let (_, top) = PART.get();
    if top != 0 && Node::current().is_some_and(|node| node.is_shared(here as usize)) {
        // SAFETY: a thread on its own stack is not on its private one.
        unsafe { on_stack(enter, here.cast(), top) };
    } else {
        call();
    }
}

/// Does what neither a handler of the program nor a fault on the caller's stack may interrupt, because it holds a
/// lock that they would wait for.
pub fn uninterrupted<R>(call: impl FnOnce() -> R) -> R {
    let mut call = Some(call);
    let mut result = None;
    on_private_stack(&mut || result = call.take().map(Thread::in_runtime));
    result.expect("the function is called")
}

/// Calls the function that its argument points to, as [`on_stack`] wants it.
///
/// # Safety
/// The argument is a pointer to a `&mut dyn FnMut()` that outlives the call.
pub unsafe extern "C" fn enter(call: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { (*call.cast::<&mut dyn FnMut()>())() };
    std::ptr::null_mut()
}
