//! Conversions of `printf` that the program brings: they are known on all nodes, in the same order.

use super::calls::on_others;
use super::{common, in_order};
use libc::{c_int, c_void, wchar_t};

/// A function of the program's, which is at the same address on all nodes.
type Function = *const c_void;

/// Makes a call on this node and, if it succeeds, on all others. Gives its result, which is the same everywhere.
fn everywhere<T: Copy>(value: T, call: fn(&mut T) -> c_int) -> c_int {
    let Some(node) = common() else { return call(&mut { value }) };
    in_order(node, || {
        let result = call(&mut { value });
        if result >= 0 {
            // What works here works there.
            let _ = on_others(node, value, call);
        }
        result
    })
}

/// Defines functions that make a conversion known.
macro_rules! registering {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            everywhere(($($argument,)*), |&mut ($($argument,)*)| {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn($($type),*) -> c_int)($($argument),*) }
            })
        }
    )*};
}

registering! {
    fn register_printf_specifier(letter: c_int, print: Function, describe: Function);
    fn register_printf_function(letter: c_int, print: Function, describe: Function);
    fn register_printf_type(take: Function);
    fn register_printf_modifier(letters: *const wchar_t);
}
