//! `pthread_once`, on which `std::call_once` is built.

use gondwana_node::Node;
use libc::{c_int, pthread_once_t};

/// The C library's value of a control object whose routine has run.
const DONE: c_int = 2;

/// When dropped, records that the routine left by an exception or by `pthread_exit`; forgotten after a normal return.
struct Unfinished(&'static Node, usize);

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.once_failed(self.1);
    }
}

/// # Safety
/// As the C library's `pthread_once`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pthread_once(
    control: *mut pthread_once_t,
    routine: extern "C-unwind" fn(),
) -> c_int {
    let Some(node) = super::sharing(control) else {
        let real = crate::real!(pthread_once: fn(*mut pthread_once_t, extern "C-unwind" fn()) -> c_int);
        // SAFETY: the same function, which lets exceptions of the routine through.
        let real: unsafe extern "C-unwind" fn(*mut pthread_once_t, extern "C-unwind" fn()) -> c_int =
            unsafe { std::mem::transmute(real) };
        // SAFETY: forwards the caller's arguments.
        return unsafe { real(control, routine) };
    };
    let mark = control.cast::<c_int>();
    // SAFETY: the caller passes a control object, which is a number.
    if node.once_enter(control as usize, || unsafe { mark.read_volatile() } != 0) {
        let unfinished = Unfinished(node, control as usize);
        routine();
        std::mem::forget(unfinished);
        // SAFETY: as above.
        unsafe { mark.write_volatile(DONE) };
        node.once_done(control as usize);
    }
    0
}
