//! The registers of a thread, in what the kernel saves of it.

use crate::numbers::many;
use libc::{c_int, ucontext_t};

/// The general registers, in the order of their numbers in the instruction set, in what the kernel saves of a thread.
pub(crate) const REGISTERS: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// What the general registers of an interrupted thread hold.
pub(crate) fn general(context: &ucontext_t) -> [u64; 16] {
    REGISTERS.map(|register| context.uc_mcontext.gregs[many(register)].cast_unsigned())
}

/// Has them hold something else when the thread goes on.
pub(crate) fn set_general(context: &mut ucontext_t, values: &[u64; 16]) {
    for (register, value) in REGISTERS.iter().zip(values) {
        context.uc_mcontext.gregs[many(*register)] = value.cast_signed();
    }
}

/// Replaces a thread's signal mask, of which the kernel has 64 bits; returns what it was.
pub(crate) fn set_mask(context: &mut ucontext_t, mask: impl FnOnce(u64) -> u64) -> u64 {
    let place = (&raw mut context.uc_sigmask).cast::<u64>();
    // SAFETY: the kernel's part of the mask.
    unsafe {
        let before = place.read();
        place.write(mask(before));
        before
    }
}
