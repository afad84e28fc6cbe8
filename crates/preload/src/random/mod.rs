//! Random numbers: `rand`, `drand48` and their relatives, whose hidden state is one for all nodes.
//!
//! The state is in the span. A mutex of the runtime guards it, whose token rests on the node that drew last. The
//! generators are the C library's: its reentrant functions work on the shared state. Functions that have no hidden
//! state (`rand_r`, `arc4random`, `getrandom`) are the C library's as they are.

/// Defines exported functions: what they give in a process that uses the shared state; otherwise the C library's
/// function is called.
macro_rules! shared_or_native {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $shared:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            match $shared {
                Some(result) => result,
                // SAFETY: forwards the caller's arguments.
                None => unsafe { $crate::real!($name: fn($($type),*) -> $result)($($argument),*) },
            }
        }
    )*};
}

mod additive;
mod congruential;

pub(crate) use congruential::set_parameters_here;

use additive::Additive;
use congruential::Congruential;
use gondwana_node::{MutexKind, Node};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The state of both generators, in shared memory. All zero is how it begins.
#[repr(C)]
struct State {
    additive: Additive,
    congruential: Congruential,
}

/// The shared state. Null in a process that has the C library's own: in a run of one node, before a process is a node,
/// and in the child of a `fork`.
static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// From now on this process uses the state that all nodes share.
pub(crate) fn begin(node: &Node) {
    const { assert!(size_of::<State>() <= crate::map::program_break::START) };
    STATE.store(node.library_page() as *mut State, Ordering::Relaxed);
}

/// In the child of a `fork`, which is no node: the C library goes on from where the run is.
pub(crate) fn restore() {
    let state = STATE.swap(null_mut(), Ordering::Relaxed);
    if !state.is_null() {
        // SAFETY: the child has its own copy of what was shared, and one thread.
        unsafe {
            (*state).additive.become_native();
            (*state).congruential.become_native();
        }
    }
}

/// Calls a function with the shared state, which no other thread of the run uses meanwhile; `None` if this process
/// has none.
#[inline]
fn with_state<R>(call: impl FnOnce(&'static Node, *mut State) -> R) -> Option<R> {
    let state = STATE.load(Ordering::Relaxed);
    if state.is_null() {
        return None;
    }
    let node = Node::current()?;
    if !node.mutex_lock_at_hand(state as usize) {
        lock(node, state);
    }
    let result = call(node, state);
    if !node.mutex_unlock_at_hand(state as usize) {
        unlock(node, state);
    }
    Some(result)
}

#[cold]
fn lock(node: &'static Node, state: *mut State) {
    done(node.mutex_lock(state as usize, || MutexKind::Normal, None));
}

#[cold]
fn unlock(node: &'static Node, state: *mut State) {
    done(node.mutex_unlock(state as usize, || MutexKind::Normal));
}

fn done(result: Result<(), i32>) {
    if let Err(error) = result {
        crate::report::fatal(&format!("random numbers: {}", std::io::Error::from_raw_os_error(error)));
    }
}
