//! Running code on a stack inside the span.
//!
//! A thread's control block and thread-local storage stay where the C library puts them, in memory that is no page of
//! the span; its frames are shared pages, so that other threads may follow pointers to its locals.

use std::arch::naked_asm;

/// Calls `function(argument)` on the stack that ends at `top` (16-byte aligned) and returns on the present one. Notes in
/// `left` where it left that; the caller's registers are above, where a collector of garbage looks for references.
///
/// The unwinder must stop here: an exception that leaves `function` ends the program as natively, and `pthread_exit`
/// continues in the C library's thread start.
///
/// # Safety
/// `top` ends a writable stack that nobody else uses, and `left` can be written.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn on_stack(
    function: unsafe extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    argument: *mut libc::c_void,
    top: usize,
    left: *mut usize,
) -> *mut libc::c_void {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rcx], rsp",
        "mov rsp, rdx",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
        ".cfi_endproc",
    )
}
