//! The chain of calls that leads to an allocation.

use crate::unwind::walk;
use std::ops::Range;

/// The most calls of a chain that are kept.
pub const DEPTH: usize = 12;

/// The most frames that are unwound: this library's own come first.
const MOST_FRAMES: usize = 64;

/// A call: its return address, and the stack slot that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The address that it returns to.
    pub returns_to: usize,
    /// Where on the stack that is written.
    pub slot: usize,
}

/// The calls that the calling thread is in, innermost first, from the one whose return address is at `slot`; without
/// those that return into `own`. Empty if the stack cannot be unwound.
#[inline(never)]
pub fn calls_from(slot: usize, own: &Range<usize>, calls: &mut Vec<Call>) {
    calls.clear();
    let mut has_begun = false;
    walk(MOST_FRAMES, |frame| {
        has_begun |= frame.slot == slot;
        if !has_begun {
            return frame.slot < slot;
        }
        // A signal handler's chain ends at the frame that the signal interrupted.
        if frame.interrupted {
            return false;
        }
        if !own.contains(&frame.returns_to) {
            calls.push(Call { returns_to: frame.returns_to, slot: frame.slot });
        }
        calls.len() < DEPTH
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::arch::naked_asm;

    /// Calls a function with the place of its own return address.
    #[unsafe(naked)]
    unsafe extern "C" fn called(_then: extern "C" fn(*const usize, *mut Vec<Call>), _calls: *mut Vec<Call>) {
        naked_asm!("mov rax, rdi", "mov rdi, rsp", "jmp rax")
    }

    extern "C" fn find(slot: *const usize, calls: *mut Vec<Call>) {
        // SAFETY: `called` passes the list of its caller.
        unsafe { calls_from(slot as usize, &(0..0), &mut *calls) };
    }

    #[inline(never)]
    fn inner(calls: &mut Vec<Call>) -> usize {
        // SAFETY: `find` takes these arguments.
        unsafe { called(find, calls) };
        calls.len()
    }

    #[inline(never)]
    fn recursive(depth: usize, calls: &mut Vec<Call>) -> usize {
        // More is done after the call, so that it is one.
        if depth == 0 { inner(calls) } else { recursive(depth - 1, calls) + std::hint::black_box(depth) }
    }

    #[test]
    fn the_calls_of_a_thread_are_found_where_they_are_written() {
        let mut calls = vec![];
        inner(&mut calls);
        assert!(calls.len() > 3, "{calls:?}");
        let start = inner as *const () as usize;
        assert!((start..start + 200).contains(&calls[0].returns_to), "{calls:x?}, {start:x}");
        assert!(calls.is_sorted_by(|a, b| a.slot < b.slot));
    }

    #[test]
    fn of_many_calls_the_innermost_are_emitted() {
        let mut calls = vec![];
        recursive(100, &mut calls);
        assert_eq!(calls.len(), DEPTH);
        assert!(calls[2..].windows(2).all(|pair| pair[0].returns_to == pair[1].returns_to), "{calls:x?}");
    }

    #[test]
    fn calls_of_some_code_can_be_left_out() {
        let mut calls = vec![];
        recursive(20, &mut calls);
        let slot = calls[0].slot;
        let mut rest = vec![];
        calls_from(slot, &(0..usize::MAX), &mut rest);
        assert_eq!(rest, []);
    }
}
