//! The calls that an allocation comes from, where it does not come from the program itself: a container of the C++
//! library, say, or a library that allocates on behalf of its caller.

use std::ffi::{c_int, c_void};
use std::ops::Range;

/// Calls beyond this depth are not looked at.
const DEEPEST: usize = 32;

/// The runtime's name for a frame during a walk.
#[repr(C)]
struct Context([u8; 0]);

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        visit: extern "C-unwind" fn(*mut Context, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

const GO_ON: c_int = 0;
const STOP: c_int = 5;

struct Walk<'a> {
    left: usize,
    visit: &'a mut dyn FnMut(usize) -> bool,
}

extern "C-unwind" fn visit_frame(context: *mut Context, data: *mut c_void) -> c_int {
    // SAFETY: `walk` passes a pointer to its `Walk`, which nobody else uses meanwhile; the context is valid during
    // this call.
    let (walk, address) = unsafe { (&mut *data.cast::<Walk<'_>>(), _Unwind_GetIP(context)) };
    walk.left -= 1;
    if walk.left == 0 || !(walk.visit)(address) { STOP } else { GO_ON }
}

/// Shows the return addresses of the calling thread, the innermost first, until `visit` returns false.
fn walk(mut visit: impl FnMut(usize) -> bool) {
    let mut walk = Walk { left: DEEPEST, visit: &mut visit };
    // SAFETY: the callback gets the pointer that is given here, and only during this call.
    unsafe { _Unwind_Backtrace(visit_frame, (&raw mut walk).cast()) };
}

/// The innermost call of the code `program`, behind the call that returns to `caller`; `None` if that is of this code
/// itself.
pub fn beyond(caller: usize, program: &Range<usize>) -> Option<usize> {
    if program.contains(&caller) {
        return None;
    }
    let mut found = None;
    walk(|address| {
        found = program.contains(&address).then_some(address);
        found.is_none()
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_from_the_inside_out() {
        let mut seen = vec![];
        walk(|address| {
            seen.push(address);
            true
        });
        assert!(seen.len() > 2);
        let outer = seen[2];
        assert_eq!(beyond(0, &(outer..outer + 1)), Some(outer));
        assert_eq!(beyond(outer, &(outer..outer + 1)), None);
        assert_eq!(beyond(0, &(1..2)), None);
    }
}
