//! Per-thread state of the runtime, found without a call.
//!
//! For a `thread_local!` in a shared library the compiler asks the loader where the calling thread has it, each time: the
//! library might have been loaded after the thread began. This library is loaded with the program, so the distance
//! from the thread pointer is settled at the start (the *initial-exec* model of thread-local storage) and finding the
//! place takes two instructions. `malloc`, mutexes and all the runtime's critical sections begin with it.

use crate::Thread;
use std::arch::{asm, global_asm};
use std::cell::Cell;

/// The words of the kernel's description of a signal, and how many of them say anything.
pub(crate) const SIGNAL_INFO_WORDS: usize = size_of::<libc::siginfo_t>() / size_of::<u64>();

/// The beginning of such a description.
pub(crate) type SignalInfo = [u64; 6];

/// The variables of the calling thread. All bytes zero is what a thread begins with.
#[repr(C)]
pub(crate) struct PerThread {
    /// The thread as it began.
    pub first: Cell<Option<&'static Thread>>,
    /// The thread as it is now.
    pub current: Cell<Option<&'static Thread>>,
    /// Signals whose handlers wait for the thread to leave the runtime.
    pub postponed: Cell<u64>,
    /// What came with them.
    pub postponed_infos: [Cell<SignalInfo>; 64],
    /// As the kernel takes it.
    pub sent_info: Cell<[u64; SIGNAL_INFO_WORDS]>,
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
    ".pushsection .tbss.gondwana_per_thread, \"awT\", @nobits",
    ".globl gondwana_per_thread",
    ".hidden gondwana_per_thread",
    ".type gondwana_per_thread, @object",
    ".size gondwana_per_thread, {size}",
    ".p2align 3",
    "gondwana_per_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<PerThread>(),
);

/// The variables of the calling thread. The reference cannot reach another one: `PerThread` is not `Sync`.
#[inline(always)]
pub(crate) fn per_thread() -> &'static PerThread {
    let place: *const PerThread;
    // SAFETY: the first word of a thread's control block is its own address, and the loader has written the variables'
    // distance from there to the place that is added.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + gondwana_per_thread@GOTTPOFF]",
            out(reg) place,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: all bytes of the place were zero at first, which is a value of every field, and it lives as long as the
    // only thread that has the reference.
    unsafe { &*place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(per_thread().depth.replace(1), 0);
        std::thread::spawn(|| assert_eq!(per_thread().depth.replace(2), 0)).join().unwrap();
        assert_eq!(per_thread().depth.replace(0), 1);
        assert!(per_thread().current.get().is_none());
    }
}
