//! C++'s `operator new`, so that an allocation is known by the call in the program and not by that of `malloc` inside
//! the C++ library.
//!
//! Only where the C++ library's own operator would be called, which allocates by `malloc` and frees by `free`; a program
//! or an allocator with operators of its own keeps them. Where there is no memory, the C++ library is asked as well: it
//! calls the program's handler, and throws.

use crate::alloc::{allocate, allocate_aligned};
use crate::next_function::NextFunction;
use gondwana_elf::loaded;
use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::OnceLock;

/// Libraries whose operators call `malloc` and `free`.
const PLAIN: [&str; 2] = ["libstdc++.so.", "libc++abi.so."];

/// True if the next operator is one of a C++ library.
fn is_plain() -> bool {
    static NEXT: NextFunction = NextFunction::new(c"_Znwm");
    static IS_PLAIN: OnceLock<bool> = OnceLock::new();
    *IS_PLAIN.get_or_init(|| {
        // SAFETY: the next operator's library is in use.
        let library = unsafe { loaded::at(NEXT.address()) };
        library
            .is_some_and(|library| PLAIN.iter().any(|name| library.file_name().starts_with(name.as_bytes())))
    })
}

/// The memory, or null if the next operator is to be asked.
unsafe extern "C" fn new(size: usize, slot: *const usize) -> *mut c_void {
    if !is_plain() {
        return std::ptr::null_mut();
    }
    // SAFETY: plain allocation, for a call that waits. Also what is empty has an address of its own.
    unsafe { allocate(size.max(1), slot) }
}

/// As [`new`], for an alignment.
unsafe extern "C" fn new_aligned(size: usize, alignment: usize, slot: *const usize) -> *mut c_void {
    if !is_plain() {
        return std::ptr::null_mut();
    }
    // SAFETY: plain allocation, for a call that waits.
    unsafe { allocate_aligned(alignment, size.max(1), slot) }
}

/// The address of the next operator, for the code below.
extern "C" fn next(real: &NextFunction) -> usize {
    real.address()
}

/// Defines operators that take the place of their return address along. Where there is no memory, the next operator takes over as if
/// it had been called: what it throws must not pass through frames of this library.
macro_rules! operators {
    ($($name:ident $symbol:literal $register:literal $target:path;)*) => {$(
        /// # Safety
        /// As the C++ library's operator of this name.
        #[allow(non_snake_case, reason = "C++ has chosen the name")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            static REAL: NextFunction = NextFunction::new($symbol);
            naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                concat!("lea ", $register, ", [rsp + 24]"),
                "call {target}",
                "test rax, rax",
                "jz 2f",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "ret",
                "2:",
                ".cfi_adjust_cfa_offset 24",
                "lea rdi, [rip + {real}]",
                "call {next}",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                target = sym $target,
                real = sym REAL,
                next = sym next,
            )
        }
    )*};
}

operators! {
    _Znwm c"_Znwm" "rsi" new;
    _Znam c"_Znam" "rsi" new;
    _ZnwmRKSt9nothrow_t c"_ZnwmRKSt9nothrow_t" "rsi" new;
    _ZnamRKSt9nothrow_t c"_ZnamRKSt9nothrow_t" "rsi" new;
    _ZnwmSt11align_val_t c"_ZnwmSt11align_val_t" "rdx" new_aligned;
    _ZnamSt11align_val_t c"_ZnamSt11align_val_t" "rdx" new_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t c"_ZnwmSt11align_val_tRKSt9nothrow_t" "rdx" new_aligned;
    _ZnamSt11align_val_tRKSt9nothrow_t c"_ZnamSt11align_val_tRKSt9nothrow_t" "rdx" new_aligned;
}
