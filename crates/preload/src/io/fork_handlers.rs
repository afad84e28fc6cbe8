//! What the program wants to be done at each `fork` (`pthread_atfork`).
//!
//! The C library would do it in the midst of the fork, when the node stands still. All nodes know all of it, because any thread may fork.

use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Node, ProcessChange};
use libc::{c_int, c_void};
use std::sync::Mutex;

type Function = Option<unsafe extern "C" fn()>;

/// What is called before a fork, and after it in the parent and in the child.
#[derive(Clone, Copy)]
pub(crate) struct ForkHandlers {
    pub prepare: Function,
    pub parent: Function,
    pub child: Function,
}

static HANDLERS: Mutex<Vec<ForkHandlers>> = Mutex::new(vec![]);

/// Adds handlers to those of this process.
pub(crate) fn add_here(handlers: ForkHandlers) {
    uninterrupted(|| lock(&HANDLERS).push(handlers));
}

/// As the C library's function of this name, by which `pthread_atfork` registers handlers of an object. What was opened stays until the
/// end.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __register_atfork(
    prepare: Function,
    parent: Function,
    child: Function,
    _object: *mut c_void,
) -> c_int {
    add_here(ForkHandlers { prepare, parent, child });
    let address = |function: Function| function.map_or(0, |function| function as usize as u64);
    let change =
        ProcessChange::AtFork { prepare: address(prepare), parent: address(parent), child: address(child) };
    Node::current().and_then(|node| node.change_elsewhere(change).err()).unwrap_or(0)
}

/// As the C library's function of this name, which old programs find there; others have one of their own.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_atfork(
    prepare: Function,
    parent: Function,
    child: Function,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { __register_atfork(prepare, parent, child, std::ptr::null_mut()) }
}

/// A function of the program at an address; none at 0.
///
/// # Safety
/// It takes no arguments.
pub(crate) unsafe fn at(address: usize) -> Function {
    // SAFETY: null is no function, and others are as the caller promises.
    unsafe { std::mem::transmute::<usize, Function>(address) }
}

/// Makes a fork with the handlers around it.
pub(super) fn around(fork: impl FnOnce() -> c_int) -> c_int {
    let handlers = uninterrupted(|| lock(&HANDLERS).clone());
    let call = |function: Function| {
        if let Some(function) = function {
            // SAFETY: a function of the program, for this purpose.
            unsafe { function() };
        }
    };
    let before = crate::errno::get();
    handlers.iter().rev().for_each(|each| call(each.prepare));
    let child = fork();
    let error = if child < 0 { crate::errno::get() } else { before };
    handlers.iter().for_each(|each| call(if child == 0 { each.child } else { each.parent }));
    crate::errno::set(error);
    child
}
