//! The calls that the calling thread is in.
//!
//! Frames need no frame pointers: the compiler's tables for exceptions tell how to get from one to the next.

use std::ffi::{c_int, c_void};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The address that it returns to.
    pub returns_to: usize,
    /// Where on the stack that is written.
    pub slot: usize,
    /// It is no call: a signal has interrupted the code there.
    pub interrupted: bool,
}

/// The runtime's name for a frame during a walk.
#[repr(C)]
struct Context([u8; 0]);

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        visit: extern "C-unwind" fn(*mut Context, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut Context, interrupted: *mut c_int) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
}

struct Walk<'a> {
    left: usize,
    visit: &'a mut dyn FnMut(Frame) -> bool,
}

extern "C-unwind" fn visit_frame(context: *mut Context, data: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 5;
    let mut interrupted = 0;
    // SAFETY: `walk` passes a pointer to its `Walk`, which nobody else uses meanwhile; the context is valid during
    // this call.
    let (walk, returns_to, after) = unsafe {
        let walk = &mut *data.cast::<Walk<'_>>();
        (walk, _Unwind_GetIPInfo(context, &mut interrupted), _Unwind_GetCFA(context))
    };
    // What the stack pointer is after the return: the return address is the word below.
    let slot = after.wrapping_sub(size_of::<usize>());
    walk.left -= 1;
    // Nobody has called the first function of all.
    let goes_on = returns_to != 0 && (walk.visit)(Frame { returns_to, slot, interrupted: interrupted != 0 });
    if goes_on && walk.left > 0 { GO_ON } else { STOP }
}

/// Shows the calls of the calling thread, the innermost first and at most `most`, until `visit` returns false.
pub fn walk(most: usize, mut visit: impl FnMut(Frame) -> bool) {
    let mut walk = Walk { left: most, visit: &mut visit };
    // SAFETY: the callback gets the pointer that is given here, and only during this call.
    unsafe { _Unwind_Backtrace(visit_frame, (&raw mut walk).cast()) };
}
