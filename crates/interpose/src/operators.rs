//! C++'s `operator new` and `operator delete`, so that an allocation is known by the call in the program and not by that of `malloc`
//! inside the C++ library.
//!
//! Only where the C++ library's own operator would be called, which allocates by `malloc` and frees by `free`, or that of an allocator
//! whose `malloc` and `free` are replaced, too. A program or a library with other operators of its own keeps them.

use gondwana_elf::loaded;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Libraries whose operators call `malloc` and `free`.
const PLAIN: [&[u8]; 2] = [b"libstdc++.so.", b"libc++abi.so."];

/// An operator that the library stands in front of.
#[derive(Debug)]
pub struct Operator {
    name: &'static CStr,
    next: OnceLock<Next>,
}

/// The operator that would be called without the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Its address.
    pub address: usize,
    /// It is one of the C++ library, which calls `malloc`, or `free`.
    pub is_plain: bool,
    /// It is one of an allocator: its library defines `malloc` and `free`.
    pub is_of_allocator: bool,
}

impl Operator {
    /// The operator of this name, as C++ mangles it.
    #[must_use]
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, next: OnceLock::new() }
    }

    /// Its name.
    pub fn name(&self) -> &'static CStr {
        self.name
    }

    /// The next operator; `None` if it was not found yet.
    #[inline]
    pub fn known(&self) -> Option<Next> {
        self.next.get().copied()
    }

    /// Looks the next operator up, from the point of view of the code that has called this one; `None` if there is none. The
    /// loader takes a lock, and may allocate.
    #[cold]
    pub fn find(&self, caller: usize) -> Option<Next> {
        let found = self.look_up(caller)?;
        Some(*self.next.get_or_init(|| found))
    }

    fn look_up(&self, caller: usize) -> Option<Next> {
        // SAFETY: the name is a C string.
        let mut address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        // SAFETY: the objects of the caller, of an operator that is found, and of this function are in use.
        let object = |address: usize| unsafe { loaded::at(address) };
        if address.is_null() {
            // An object that was loaded later has brought a C++ library along that only it knows.
            // SAFETY: the loader's records of objects serve as handles.
            address = unsafe { libc::dlsym(object(caller)?.handle(), self.name.as_ptr()) };
        }
        let library = object(address as usize);
        let own = object(Self::known as *const () as usize);
        if address.is_null() || library.map(|library| library.handle()) == own.map(|own| own.handle()) {
            return None;
        }
        let is_plain =
            library.is_some_and(|library| PLAIN.iter().any(|name| library.file_name().starts_with(name)));
        let is_of_allocator = library
            .is_some_and(|library| [c"malloc", c"free"].iter().all(|name| library.function(name).is_some()));
        Some(Next { address: address as usize, is_plain, is_of_allocator })
    }
}

/// Defines the exported forms of `operator new`, or those of `operator delete`.
///
/// - `new` and `new_aligned` are functions of type
///   `extern "C" fn(usize, usize, &'static Operator, *const usize) -> *mut c_void`. They get the operator's first two
///   arguments (the second is the alignment in `new_aligned`, and means nothing in `new`), the operator, and the place of
///   the return address of the program's call. They return memory, or null if the next operator is to be asked.
/// - `delete` is such a function for the forms of `operator delete`, whose first argument is the block. It returns null if the next
///   operator is to free it.
/// - `next` is an `extern "C" fn(&'static Operator, *const usize) -> usize`: the next operator's address. That operator
///   takes over as if it had been called: what it throws must not pass through frames of the library.
#[macro_export]
macro_rules! operators {
    (new: $new:path, new_aligned: $new_aligned:path, next: $next:path $(,)?) => {
        $crate::operators!(_Znwm, $new, $next);
        $crate::operators!(_Znam, $new, $next);
        $crate::operators!(_ZnwmRKSt9nothrow_t, $new, $next);
        $crate::operators!(_ZnamRKSt9nothrow_t, $new, $next);
        $crate::operators!(_ZnwmSt11align_val_t, $new_aligned, $next);
        $crate::operators!(_ZnamSt11align_val_t, $new_aligned, $next);
        $crate::operators!(_ZnwmSt11align_val_tRKSt9nothrow_t, $new_aligned, $next);
        $crate::operators!(_ZnamSt11align_val_tRKSt9nothrow_t, $new_aligned, $next);
    };
    (delete: $delete:path, next: $next:path $(,)?) => {
        $crate::operators!(_ZdlPv, $delete, $next);
        $crate::operators!(_ZdaPv, $delete, $next);
        $crate::operators!(_ZdlPvm, $delete, $next);
        $crate::operators!(_ZdaPvm, $delete, $next);
        $crate::operators!(_ZdlPvRKSt9nothrow_t, $delete, $next);
        $crate::operators!(_ZdaPvRKSt9nothrow_t, $delete, $next);
        $crate::operators!(_ZdlPvSt11align_val_t, $delete, $next);
        $crate::operators!(_ZdaPvSt11align_val_t, $delete, $next);
        $crate::operators!(_ZdlPvmSt11align_val_t, $delete, $next);
        $crate::operators!(_ZdaPvmSt11align_val_t, $delete, $next);
        $crate::operators!(_ZdlPvSt11align_val_tRKSt9nothrow_t, $delete, $next);
        $crate::operators!(_ZdaPvSt11align_val_tRKSt9nothrow_t, $delete, $next);
    };
    ($name:ident, $target:path, $next:path) => {
        /// # Safety
        /// As the C++ library's operator of this name.
        #[allow(non_snake_case, reason = "C++ has chosen the name")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            static OPERATOR: $crate::Operator = $crate::Operator::new($crate::c_name!($name));
            ::std::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "lea rdx, [rip + {operator}]",
                "lea rcx, [rsp + 24]",
                "call {target}",
                "test rax, rax",
                "jz 2f",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "ret",
                "2:",
                ".cfi_adjust_cfa_offset 24",
                "lea rdi, [rip + {operator}]",
                "lea rsi, [rsp + 24]",
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
                next = sym $next,
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_that_no_object_has_is_not_found() {
        let operator = Operator::new(c"_Zgondwana");
        assert_eq!(operator.find(an_operator_that_no_object_has_is_not_found as fn() as usize), None);
        assert_eq!(operator.known(), None);
    }

    #[test]
    fn what_is_not_of_the_c_plus_plus_library_is_not_plain() {
        // Any function does: this process may have no C++ library.
        let operator = Operator::new(c"getpid");
        let next = operator.find(libc::getpid as *const () as usize).unwrap();
        assert!(!next.is_plain);
        assert_eq!(operator.known(), Some(next));
    }
}
