//! Functions that the C and C++ libraries call in the program: at its end, when something goes wrong, and to allocate.

use super::calls::{on_first, on_others};
use super::{common, in_order};
use libc::c_int;

/// Defines functions that register one for the program's end. It is registered, and runs, on node 0.
macro_rules! registering {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(function: usize, argument: usize) -> c_int {
            let registered = on_first((function, argument), |&mut (function, argument)| {
                // SAFETY: the program's code is at the same addresses on all nodes.
                unsafe { crate::real!($name: fn(usize, usize) -> c_int)(function, argument) }
            });
            registered.1
        }
    )*};
}

// The second is what `at_quick_exit` calls.
registering! { on_exit __cxa_at_quick_exit }

/// Defines functions of the C++ library that set a handler, or what is used where nothing else is said, and give the one before.
macro_rules! setting {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C++ library's function of this name.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(handler: usize) -> usize {
            // SAFETY: the program's code is at the same addresses on all nodes.
            let set = |handler| unsafe { crate::real!($name: fn(usize) -> usize)(handler) };
            let Some(node) = common() else { return set(handler) };
            in_order(node, || {
                let before = set(handler);
                // It cannot fail, but for want of a thread.
                let _ = on_others(node, handler, |&mut handler| {
                    // SAFETY: as above.
                    unsafe { crate::real!($name: fn(usize) -> usize)(handler) };
                    0
                });
                before
            })
        }
    )*};
}

// `std::set_terminate`, `std::set_unexpected`, `std::set_new_handler` and `std::pmr::set_default_resource`.
setting! {
    _ZSt13set_terminatePFvvE _ZSt14set_unexpectedPFvvE _ZSt15set_new_handlerPFvvE
    _ZNSt3pmr20set_default_resourceEPNS_15memory_resourceE
}
