//! What the kernel gives a new thread of the thread that creates it: its name, and how it computes with floating-point numbers.
//!
//! A thread of another node is created by a thread of the runtime there. What it computes must not depend on that: a program that is compiled with
//! `-ffast-math` has its first thread take tiny numbers for zero (`FTZ`, `DAZ`), and all others do so because it does.

use gondwana_node::Inherited;
use std::arch::asm;

/// What the calling thread passes on.
pub(super) fn own() -> Inherited {
    // On the heap: the kernel may not write to shared memory, as a stack is.
    let mut name = Box::new([0_u8; 16]);
    // SAFETY: the kernel writes 16 bytes.
    unsafe { gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    Inherited { name: *name, modes: modes() }
}

/// The calling thread, which is new, has what its creator has passed on.
pub(super) fn take(inherited: &Inherited) {
    let name = Box::new(inherited.name);
    // SAFETY: the kernel reads 16 bytes.
    unsafe { gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_SET_NAME, name.as_ptr()) };
    compute_by(inherited.modes);
}

/// What of a thread's `MXCSR` says how it computes; the rest tells what has come of that.
const MODES: u32 = 0xffc0;

/// How the calling thread computes: its `MXCSR` in the upper half, and the control word of the x87.
#[inline]
pub(crate) fn modes() -> u32 {
    let (mut vector, mut classic) = (0_u32, 0_u16);
    // SAFETY: the instructions write to variables of this function.
    unsafe {
        asm!("stmxcsr [{}]", in(reg) &raw mut vector, options(nostack, preserves_flags));
        asm!("fnstcw [{}]", in(reg) &raw mut classic, options(nostack, preserves_flags));
    }
    (vector & MODES) << 16 | u32::from(classic)
}

/// The calling thread computes as one does that has these [`modes`].
#[inline]
pub(crate) fn compute_by(wanted: u32) {
    if modes() == wanted {
        return;
    }
    let (mut vector, classic) = (0_u32, wanted.to_le_bytes());
    // SAFETY: the modes are those of a thread, so that they are valid; the instructions read and write variables of this function.
    unsafe {
        asm!("stmxcsr [{}]", in(reg) &raw mut vector, options(nostack, preserves_flags));
        vector = vector & !MODES | wanted >> 16;
        asm!("ldmxcsr [{}]", in(reg) &raw const vector, options(nostack, preserves_flags, readonly));
        asm!("fldcw [{}]", in(reg) &raw const classic, options(nostack, preserves_flags, readonly));
    }
}
