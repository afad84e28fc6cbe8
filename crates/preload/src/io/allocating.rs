//! Functions of the C library that allocate for the program.

use super::{Buffer, with_buffers};
use crate::alloc::for_program;
use libc::{c_char, c_int, c_void, size_t, wchar_t};

macro_rules! allocating {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty { $($buffer:expr),* })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            for_program(|| with_buffers(&[$($buffer),*], || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn($($type),*) -> $result)($($argument),*) }
            }))
        }
    )*};
}

/// The comparison of a search tree.
type Compare = extern "C" fn(*const c_void, *const c_void) -> c_int;

allocating! {
    fn strdup(text: *const c_char) -> *mut c_char {}
    fn __strdup(text: *const c_char) -> *mut c_char {}
    fn strndup(text: *const c_char, length: size_t) -> *mut c_char {}
    fn __strndup(text: *const c_char, length: size_t) -> *mut c_char {}
    fn wcsdup(text: *const wchar_t) -> *mut wchar_t {}
    fn vasprintf(result: *mut *mut c_char, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn __vasprintf_chk(result: *mut *mut c_char, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn vsscanf(text: *const c_char, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn __isoc99_vsscanf(text: *const c_char, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn __isoc23_vsscanf(text: *const c_char, format: *const c_char, arguments: *mut c_void) -> c_int {}
    fn vswscanf(text: *const wchar_t, format: *const wchar_t, arguments: *mut c_void) -> c_int {}
    fn __isoc99_vswscanf(text: *const wchar_t, format: *const wchar_t, arguments: *mut c_void) -> c_int {}
    fn __isoc23_vswscanf(text: *const wchar_t, format: *const wchar_t, arguments: *mut c_void) -> c_int {}
    fn realpath(path: *const c_char, result: *mut c_char) -> *mut c_char { Buffer::string(path) }
    fn canonicalize_file_name(path: *const c_char) -> *mut c_char { Buffer::string(path) }
    fn tempnam(folder: *const c_char, prefix: *const c_char) -> *mut c_char { Buffer::string(folder) }
    fn argz_create(arguments: *const *mut c_char, vector: *mut *mut c_char, length: *mut size_t) -> c_int {}
    fn argz_create_sep(text: *const c_char, separator: c_int, vector: *mut *mut c_char, length: *mut size_t) -> c_int {}
    fn argz_append(vector: *mut *mut c_char, length: *mut size_t, more: *const c_char, size: size_t) -> c_int {}
    fn argz_add(vector: *mut *mut c_char, length: *mut size_t, text: *const c_char) -> c_int {}
    fn argz_add_sep(vector: *mut *mut c_char, length: *mut size_t, text: *const c_char, separator: c_int) -> c_int {}
    fn argz_insert(vector: *mut *mut c_char, length: *mut size_t, before: *mut c_char, text: *const c_char) -> c_int {}
    fn envz_add(vector: *mut *mut c_char, length: *mut size_t, name: *const c_char, value: *const c_char) -> c_int {}
    fn tsearch(key: *const c_void, root: *mut *mut c_void, compare: Compare) -> *mut c_void {}
    fn hcreate_r(count: size_t, table: *mut c_void) -> c_int {}
    fn __sched_cpualloc(count: size_t) -> *mut c_void {}
    fn backtrace_symbols(addresses: *const *mut c_void, count: c_int) -> *mut *mut c_char {}
}
