//! `malloc` and related functions, with the address of their return address as a further argument.

/// The alignment that the C library gives all blocks.
pub const MALLOC_ALIGNMENT: usize = 16;

/// Defines the exported functions `malloc`, `calloc`, `realloc`, `reallocarray`, `memalign`, `aligned_alloc`,
/// `posix_memalign`, `valloc` and `pvalloc`: each goes on to the function that is named for it, of type
/// `unsafe extern "C" fn`, which gets one argument more, the place on the stack where the return address of the program's
/// call is.
#[macro_export]
macro_rules! allocator {
    (
        malloc: $malloc:path,
        calloc: $calloc:path,
        realloc: $realloc:path,
        reallocarray: $reallocarray:path,
        memalign: $memalign:path,
        aligned_alloc: $aligned_alloc:path,
        posix_memalign: $posix_memalign:path,
        valloc: $valloc:path,
        pvalloc: $pvalloc:path $(,)?
    ) => {
        // The register is that of the argument after the function's last one.
        $crate::allocator!(malloc, "rsi", $malloc);
        $crate::allocator!(calloc, "rdx", $calloc);
        $crate::allocator!(realloc, "rdx", $realloc);
        $crate::allocator!(reallocarray, "rcx", $reallocarray);
        $crate::allocator!(memalign, "rdx", $memalign);
        $crate::allocator!(aligned_alloc, "rdx", $aligned_alloc);
        $crate::allocator!(posix_memalign, "rcx", $posix_memalign);
        $crate::allocator!(valloc, "rsi", $valloc);
        $crate::allocator!(pvalloc, "rsi", $pvalloc);
    };
    ($name:ident, $register:literal, $target:path) => {
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            ::std::arch::naked_asm!(concat!("mov ", $register, ", rsp"), "jmp {}", sym $target)
        }
    };
}
