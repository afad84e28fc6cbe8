//! How large a native thread's stack must be.

use libc::{c_void, size_t};
use std::sync::OnceLock;

/// The size of a stack for a native thread, of which `bytes` are left to functions: the C library has the thread-local variables of the
/// whole program at its upper end.
#[must_use]
pub fn native_stack(bytes: usize) -> usize {
    static BESIDE: OnceLock<usize> = OnceLock::new();
    let beside = BESIDE.get_or_init(|| {
        // SAFETY: the C library's function, where it has one: it reads nothing of the attributes.
        unsafe {
            let function = libc::dlsym(libc::RTLD_DEFAULT, c"__pthread_get_minstack".as_ptr());
            if function.is_null() {
                return libc::PTHREAD_STACK_MIN;
            }
            let function: extern "C" fn(*const c_void) -> size_t = std::mem::transmute(function);
            function(std::ptr::null())
        }
    });
    bytes + beside
}
