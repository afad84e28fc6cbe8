//! What Intel's compilers and clang add to OpenMP: memory, and the size of stacks.

use crate::alloc;
use crate::openmp::settings;
use libc::{c_int, c_void};
use std::ptr::null_mut;

/// How large stacks are where nobody has said it.
const STACK: usize = 4 << 20;

fn zeroed(count: usize, size: usize) -> *mut c_void {
    count.checked_mul(size).map_or(null_mut(), |bytes| alloc::get(bytes, true))
}

fn stack() -> usize {
    settings::stack().unwrap_or(STACK)
}

/// Defines functions under their names in C, of which there are two, and in Fortran, which passes addresses.
macro_rules! exported {
    ($($name:ident $same:ident $fortran:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// As its functions for memory in C.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            $body
        }

        /// # Safety
        /// As the other one.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $same($($argument: $type),*) $(-> $result)? {
            // SAFETY: forwards the caller's arguments.
            unsafe { $name($($argument),*) }
        }

        /// # Safety
        /// As the others.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $fortran($($argument: *const $type),*) $(-> $result)? {
            // SAFETY: Fortran passes the addresses of its arguments.
            unsafe { $name($(*$argument),*) }
        }
    )*};
}

exported! {
    kmp_malloc kmpc_malloc kmp_malloc_(size: usize) -> *mut c_void = alloc::get(size, false);
    kmp_calloc kmpc_calloc kmp_calloc_(count: usize, size: usize) -> *mut c_void = zeroed(count, size);
    kmp_realloc kmpc_realloc kmp_realloc_(block: *mut c_void, size: usize) -> *mut c_void =
        // SAFETY: the program passes a block of these functions.
        unsafe { alloc::resize(block, size) };
    kmp_aligned_malloc kmpc_aligned_malloc kmp_aligned_malloc_(size: usize, align: usize) -> *mut c_void =
        alloc::get_aligned(size, align);
    // SAFETY: likewise.
    kmp_free kmpc_free kmp_free_(block: *mut c_void) = unsafe { alloc::free(block) };
    kmp_set_stacksize_s kmpc_set_stacksize_s kmp_set_stacksize_s_(size: usize) = settings::set_stack(size);
    kmp_set_stacksize kmpc_set_stacksize kmp_set_stacksize_(size: c_int) =
        settings::set_stack(usize::try_from(size).unwrap_or(0));
}

/// Defines functions without arguments under their names in C and in Fortran.
macro_rules! numbers {
    ($($name:ident $fortran:ident -> $result:ty = $body:expr;)*) => {$(
        /// # Safety
        /// It has none.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name() -> $result {
            $body
        }

        /// # Safety
        /// It has none.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $fortran() -> $result {
            $body
        }
    )*};
}

numbers! {
    kmp_get_stacksize_s kmp_get_stacksize_s_ -> usize = stack();
    kmp_get_stacksize kmp_get_stacksize_ -> c_int = c_int::try_from(stack()).unwrap_or(c_int::MAX);
}
