//! C++'s `operator new`, so that an allocation is known by the call in the program and not by that of `malloc` inside
//! the C++ library.
//!
//! Only where the C++ library's own operator would be called, which allocates by `malloc` and frees by `free`; a program
//! or an allocator with operators of its own keeps them. What no rule means is left to the next operator.

use crate::malloc::{NATURAL, placed};
use crate::{inside, message};
use gondwana_elf::loaded;
use libc::c_void;
use std::arch::naked_asm;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Libraries whose operators call `malloc` and `free`.
const PLAIN: [&[u8]; 2] = [b"libstdc++.so.", b"libc++abi.so."];

/// An operator that this library stands in front of.
struct Operator {
    name: &'static CStr,
    next: OnceLock<Next>,
}

/// The operator that would be called without this library.
#[derive(Clone, Copy)]
struct Next {
    address: usize,
    /// It is one of the C++ library.
    is_plain: bool,
}

impl Operator {
    /// The next one from the point of view of whoever has called this one.
    fn next(&self, caller: usize) -> Next {
        *self.next.get_or_init(|| self.find(caller))
    }

    #[cold]
    fn find(&self, caller: usize) -> Next {
        // The loader may allocate while it looks.
        let _inside = inside::enter();
        // SAFETY: the name is a C string.
        let mut address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        // SAFETY: the objects of the caller, of an operator that is found, and of this function are in use.
        let object = |address: usize| unsafe { loaded::at(address) };
        if address.is_null() {
            // An object that was loaded later has brought a C++ library along that only it knows.
            if let Some(object) = object(caller) {
                // SAFETY: the loader's records of objects serve as handles.
                address = unsafe { libc::dlsym(object.handle(), self.name.as_ptr()) };
            }
        }
        let library = object(address as usize);
        let own = object(next as *const () as usize);
        if address.is_null() || library.map(|library| library.handle()) == own.map(|own| own.handle()) {
            message::say(&format!("{}: no C++ library has this operator", self.name.to_string_lossy()));
            std::process::abort();
        }
        let is_plain =
            library.is_some_and(|library| PLAIN.iter().any(|name| library.file_name().starts_with(name)));
        Next { address: address as usize, is_plain }
    }
}

/// The memory, or null if the next operator is to be asked.
extern "C" fn new(size: usize, _: usize, operator: &Operator, caller: usize) -> *mut c_void {
    new_aligned(size, NATURAL, operator, caller)
}

/// As [`new`], for an alignment.
extern "C" fn new_aligned(size: usize, alignment: usize, operator: &Operator, caller: usize) -> *mut c_void {
    let next = operator.next(caller);
    if !next.is_plain || !alignment.is_power_of_two() {
        return std::ptr::null_mut();
    }
    // Rules may mean the operator itself: an address that is in it stands for its call of `malloc`. Also what is empty has
    // an address of its own.
    match placed(size.max(1), alignment, &[caller, next.address + 1]) {
        Some(block) => block.address as *mut c_void,
        None => std::ptr::null_mut(),
    }
}

/// The address of the next operator, for the code below.
extern "C" fn next(operator: &Operator, caller: usize) -> usize {
    operator.next(caller).address
}

/// Defines operators. Where a rule means nothing, or there is no memory, the next operator takes over as if it had been
/// called: what it throws must not pass through frames of this library.
macro_rules! operators {
    ($($name:ident $symbol:literal $target:path;)*) => {$(
        /// # Safety
        /// As the C++ library's operator of this name.
        #[allow(non_snake_case, reason = "C++ has chosen the name")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            static OPERATOR: Operator = Operator { name: $symbol, next: OnceLock::new() };
            naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "lea rdx, [rip + {operator}]",
                "mov rcx, [rsp + 24]",
                "call {target}",
                "test rax, rax",
                "jz 2f",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "ret",
                "2:",
                ".cfi_adjust_cfa_offset 24",
                "lea rdi, [rip + {operator}]",
                "mov rsi, [rsp + 24]",
                "call {next}",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                operator = sym OPERATOR,
                target = sym $target,
                next = sym next,
            )
        }
    )*};
}

operators! {
    _Znwm c"_Znwm" new;
    _Znam c"_Znam" new;
    _ZnwmRKSt9nothrow_t c"_ZnwmRKSt9nothrow_t" new;
    _ZnamRKSt9nothrow_t c"_ZnamRKSt9nothrow_t" new;
    _ZnwmSt11align_val_t c"_ZnwmSt11align_val_t" new_aligned;
    _ZnamSt11align_val_t c"_ZnamSt11align_val_t" new_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t c"_ZnwmSt11align_val_tRKSt9nothrow_t" new_aligned;
    _ZnamSt11align_val_tRKSt9nothrow_t c"_ZnamSt11align_val_tRKSt9nothrow_t" new_aligned;
}
