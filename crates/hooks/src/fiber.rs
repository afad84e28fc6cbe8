//! Fibers: stacks that the host thread runs on by turns, each with a thread pointer of its own, so that a target thread has
//! its thread-local variables.

use std::arch::{asm, naked_asm};
use std::sync::atomic::{AtomicBool, Ordering};

/// A fiber that does not run: its stack pointer and thread pointer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fiber {
    stack: usize,
    thread_pointer: usize,
}

/// Whether the processor lets user code set the thread pointer.
static QUICK: AtomicBool = AtomicBool::new(false);

/// Finds out what the processor can do.
pub(crate) fn begin() {
    const HWCAP2_FSGSBASE: u64 = 2;
    // SAFETY: reads the auxiliary vector.
    let has = unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE != 0;
    QUICK.store(has, Ordering::Relaxed);
}

/// The thread pointer of the host thread that calls.
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the thread control block of x86-64 begins with its own address.
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

/// Sets the thread pointer.
///
/// # Safety
/// It is that of a thread which does not run meanwhile.
pub(crate) unsafe fn set_thread_pointer(pointer: usize) {
    if QUICK.load(Ordering::Relaxed) {
        // SAFETY: the processor has the instruction, and the kernel permits it; the pointer is as the caller promises.
        unsafe { asm!("wrfsbase {}", in(reg) pointer, options(nostack, preserves_flags)) };
    } else {
        const ARCH_SET_FS: i32 = 0x1002;
        // SAFETY: as the caller promises.
        unsafe { gondwana_sys::syscall!(libc::SYS_arch_prctl, ARCH_SET_FS, pointer) };
    }
}

impl Fiber {
    /// A fiber that calls `entry` on a stack that ends at `top`, a multiple of 16.
    ///
    /// # Safety
    /// The memory below `top` is a stack that nobody else uses; `entry` does not return.
    pub(crate) unsafe fn new(top: usize, thread_pointer: usize, entry: extern "C" fn() -> !) -> Self {
        // What `switch_stacks` pops: control words, six registers, the return address. After `ret` the stack pointer must be
        // 8 more than a multiple of 16, as after a call.
        let words: [usize; 9] = [0x037f_0000_1f80, 0, 0, 0, 0, 0, 0, entry as *const () as usize, 0];
        let stack = top - size_of_val(&words);
        debug_assert_eq!((stack + 8 * 8) % 16, 8);
        // SAFETY: as the caller promises.
        unsafe { (stack as *mut [usize; 9]).write(words) };
        Self { stack, thread_pointer }
    }

    /// The calling host thread as a fiber, which [`switch`] fills in.
    pub(crate) fn current() -> Self {
        Self { stack: 0, thread_pointer: thread_pointer() }
    }
}

/// Leaves the fiber that runs, keeping it in `from`, for another one. Returns when somebody switches back.
///
/// # Safety
/// `to` does not run, and nobody holds references that code of the other fiber invalidates.
pub(crate) unsafe fn switch(from: *mut Fiber, to: Fiber) {
    // SAFETY: as the caller promises. Between the two calls nothing uses thread-local memory.
    unsafe {
        set_thread_pointer(to.thread_pointer);
        switch_stacks(&raw mut (*from).stack, to.stack);
    }
}

/// Saves what a called function has to keep, and goes on with another stack.
///
/// # Safety
/// `to` was written by this function or by [`Fiber::new`].
#[unsafe(naked)]
unsafe extern "C" fn switch_stacks(from: *mut usize, to: usize) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}
