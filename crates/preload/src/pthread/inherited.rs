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
    let (mut vector, mut classic) = (0_u32, 0_u16);
    // SAFETY: the kernel writes 16 bytes, and the instructions write to variables of this function.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr());
        asm!("stmxcsr [{}]", in(reg) &raw mut vector, options(nostack, preserves_flags));
        asm!("fnstcw [{}]", in(reg) &raw mut classic, options(nostack, preserves_flags));
    }
    Inherited { name: *name, vector, classic }
}

/// The calling thread, which is new, has what its creator has passed on.
pub(super) fn take(inherited: &Inherited) {
    let name = Box::new(inherited.name);
    // SAFETY: the kernel reads 16 bytes. The words are of a thread that runs, so that they are valid.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_SET_NAME, name.as_ptr());
        asm!("ldmxcsr [{}]", in(reg) &raw const inherited.vector, options(nostack, preserves_flags, readonly));
        asm!("fldcw [{}]", in(reg) &raw const inherited.classic, options(nostack, preserves_flags, readonly));
    }
}
