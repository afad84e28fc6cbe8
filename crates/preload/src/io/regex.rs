//! Regular expressions that several threads use. Matching changes a compiled expression: the C library adds states to
//! it, under a lock that is valid on one node only. So a cluster-wide lock is held meanwhile.

use super::is_shared;
use crate::alloc::for_program;
use gondwana_node::{MutexKind, Node};
use libc::{c_char, c_int, c_uint, c_void, regex_t, regmatch_t, size_t};

/// Calls the C library with exclusive use of an expression.
fn alone<R>(expression: *const c_void, call: impl FnOnce() -> R) -> R {
    let Some(node) = Node::current().filter(|_| is_shared(expression, 1)) else { return call() };
    let lock = expression as usize;
    // A normal mutex whose holder does not lock it recursively: neither call can fail.
    let _ = node.mutex_lock(lock, || MutexKind::Normal, None);
    let result = for_program(call);
    let _ = node.mutex_unlock(lock, || MutexKind::Normal);
    result
}

macro_rules! alone {
    ($(fn $name:ident($expression:ident: $kind:ty $(, $argument:ident: $type:ty)* $(,)?) $(-> $result:ty)?;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($expression: $kind $(, $argument: $type)*) $(-> $result)? {
            alone($expression.cast(), || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn($kind $(, $type)*) $(-> $result)?)($expression $(, $argument)*) }
            })
        }
    )*};
}

alone! {
    fn regcomp(expression: *mut regex_t, pattern: *const c_char, flags: c_int) -> c_int;
    fn regexec(expression: *const regex_t, text: *const c_char, count: size_t, matches: *mut regmatch_t,
        flags: c_int) -> c_int;
    fn regfree(expression: *mut regex_t);
    fn re_compile_fastmap(expression: *mut regex_t) -> c_int;
    fn re_match(expression: *mut regex_t, text: *const c_char, length: c_int, start: c_int,
        registers: *mut c_void) -> c_int;
    fn re_search(expression: *mut regex_t, text: *const c_char, length: c_int, start: c_int, range: c_int,
        registers: *mut c_void) -> c_int;
    fn re_match_2(expression: *mut regex_t, one: *const c_char, one_length: c_int, two: *const c_char,
        two_length: c_int, start: c_int, registers: *mut c_void, stop: c_int) -> c_int;
    fn re_search_2(expression: *mut regex_t, one: *const c_char, one_length: c_int, two: *const c_char,
        two_length: c_int, start: c_int, range: c_int, registers: *mut c_void, stop: c_int) -> c_int;
    fn re_set_registers(expression: *mut regex_t, registers: *mut c_void, count: c_uint, starts: *mut c_int,
        ends: *mut c_int);
}

/// # Safety
/// As the C library's function of this name.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn re_compile_pattern(
    pattern: *const c_char,
    length: size_t,
    expression: *mut regex_t,
) -> *const c_char {
    alone(expression.cast(), || {
        // SAFETY: forwards the caller's arguments.
        unsafe {
            crate::real!(re_compile_pattern: fn(*const c_char, size_t, *mut regex_t) -> *const c_char)(
                pattern, length, expression,
            )
        }
    })
}
