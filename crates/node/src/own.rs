//! What each thread has for itself, found without a call.
//!
//! For a `thread_local!` in a shared library the compiler asks the loader where the calling thread has it, each time: the
//! library might have been loaded after the thread began. This library is loaded with the program, so the distance
//! from the thread pointer is settled at the start (the *initial-exec* model of thread-local storage) and finding the
//! place takes two instructions. `malloc`, mutexes and all the runtime's critical sections begin with it.

use crate::Thread;
use std::arch::{asm, global_asm};
use std::cell::Cell;

/// The variables of the calling thread. All bytes zero is what a thread begins with.
#[repr(C)]
#[derive(Default)]
pub struct Own {
    /// The thread as it began.
    pub first: Cell<Option<&'static Thread>>,
    /// The thread as it is now.
    pub current: Cell<Option<&'static Thread>>,
    /// Signals whose handlers wait for the thread to leave the runtime.
    pub postponed: Cell<u64>,
    /// How many of the runtime's critical sections the thread is in.
    pub depth: Cell<u32>,
    /// It is starting a thread of the runtime itself.
    pub starts_native: Cell<bool>,
    /// It is the one that receives for this node.
    pub is_service: Cell<bool>,
    /// It is doing what a message asks for.
    pub handles_message: Cell<bool>,
}

global_asm!(
    ".pushsection .tbss.gondwana_own, \"awT\", @nobits",
    ".globl gondwana_own",
    ".hidden gondwana_own",
    ".type gondwana_own, @object",
    ".size gondwana_own, {size}",
    ".p2align 3",
    "gondwana_own:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Own>(),
);

/// The variables of the calling thread. The reference cannot reach another one: `Own` is not `Sync`.
#[inline(always)]
pub fn own() -> &'static Own {
    let own: *const Own;
    // SAFETY: the first word of a thread's control block is its own address, and the loader has written the variables'
    // distance from there to the place that is added.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + gondwana_own@GOTTPOFF]",
            out(reg) own,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: all bytes of the place were zero at first, which is a value of every field, and it lives as long as the
    // only thread that has the reference.
    unsafe { &*own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(own().depth.replace(1), 0);
        std::thread::spawn(|| assert_eq!(own().depth.replace(2), 0)).join().unwrap();
        assert_eq!(own().depth.replace(0), 1);
        assert!(own().current.get().is_none());
    }
}
