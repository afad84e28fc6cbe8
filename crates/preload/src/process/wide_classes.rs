//! Classes and mappings of wide characters (`wctype`, `wctrans`): the program gets their names, at addresses that are alike on all nodes, in place
//! of tables of the locale, which each node has somewhere else.

use super::{common, memory};
use gondwana_page::to_usize;
use libc::{c_char, c_int, c_ulong, c_void};
use std::ffi::CStr;

/// A locale object.
type Locale = *mut c_void;

/// A wide character that may be `WEOF`.
type Wide = u32;

/// What the program gets for what the C library has found of a name: 0 if it has found nothing.
fn named(found: c_ulong, name: *const c_char) -> c_ulong {
    let Some(node) = common().filter(|_| found != 0) else { return found };
    // SAFETY: the caller of the wrapped function passes a string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul().to_vec();
    memory::copy(node, name, 1).map_or(found, |address| address as c_ulong)
}

/// What the C library has now for what the program got; `find` does by name.
fn table(given: c_ulong, find: impl FnOnce(*const c_char) -> c_ulong) -> c_ulong {
    if memory::is_inside(to_usize(given)) { find(given as *const c_char) } else { given }
}

/// Defines the functions that find one, and those that use it, in the locale of the thread or in one that is passed.
macro_rules! wide {
    ($($find:ident, $use:ident -> $result:ty;)*; $($find_in:ident, $use_in:ident as $found_by:ident -> $result_in:ty;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $find(name: *const c_char) -> c_ulong {
            // SAFETY: the caller passes a string.
            named(unsafe { crate::real!($find: fn(*const c_char) -> c_ulong)(name) }, name)
        }

        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $use(character: Wide, given: c_ulong) -> $result {
            // SAFETY: a name, and then what the C library has given for it.
            unsafe {
                let table = table(given, |name| crate::real!($find: fn(*const c_char) -> c_ulong)(name));
                crate::real!($use: fn(Wide, c_ulong) -> $result)(character, table)
            }
        }
    )*$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $find_in(name: *const c_char, locale: Locale) -> c_ulong {
            // SAFETY: the caller passes a string and an object.
            named(unsafe { crate::real!($find_in: fn(*const c_char, Locale) -> c_ulong)(name, locale) }, name)
        }

        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $use_in(character: Wide, given: c_ulong, locale: Locale) -> $result_in {
            // SAFETY: as above, with the caller's object.
            unsafe {
                let find = |name| crate::real!($found_by: fn(*const c_char, Locale) -> c_ulong)(name, locale);
                crate::real!($use_in: fn(Wide, c_ulong, Locale) -> $result_in)(character, table(given, find), locale)
            }
        }
    )*};
}

wide! {
    wctype, iswctype -> c_int;
    wctrans, towctrans -> Wide;;
    wctype_l, iswctype_l as wctype_l -> c_int;
    wctrans_l, towctrans_l as wctrans_l -> Wide;
    __wctype_l, __iswctype_l as wctype_l -> c_int;
    __wctrans_l, __towctrans_l as wctrans_l -> Wide;
}
