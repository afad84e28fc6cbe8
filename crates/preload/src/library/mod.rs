//! Libraries that the program loads while it runs.
//!
//! Only node 0 loads a library, at addresses of the span: its variables are shared, and its code is copied to the
//! other nodes. Node 0 answers queries of threads of other nodes. Only the libraries of the language runtimes are
//! loaded by the loader of each node, at the start.

mod error;
mod gaps;
mod load;
mod replica;
mod request;
mod search;

use gondwana_node::Node;
use libc::{c_char, c_int, c_void};
use request::Operation;
use std::arch::naked_asm;
use std::ffi::CStr;

/// Records the libraries that are loaded before the program runs.
pub(crate) fn begin() {
    search::begin();
    // A later lookup would clear its message.
    error::real_dlerror();
}

/// How to go on with a call.
#[repr(C)]
struct Detour {
    /// The first argument for the C library's function, or else the result.
    value: usize,
    /// The C library's function to go on with; 0 for none.
    function: usize,
}

impl Detour {
    fn done(result: usize) -> Self {
        Self { value: result, function: 0 }
    }

    fn fail(sentence: String) -> Self {
        error::set(sentence);
        Self::done(0)
    }
}

/// Defines an exported function of two arguments that calls a helper with its return address. If the helper says so,
/// it jumps to the C library's function, which uses its return address to identify the caller.
macro_rules! detour {
    ($($name:ident($first:ty, $second:ty) => $ask:path;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_: $first, _: $second) -> *mut c_void {
            naked_asm!(
                "push rdi",
                "push rsi",
                "mov rdx, [rsp + 16]",
                "sub rsp, 8",
                "call {ask}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "test rdx, rdx",
                "jz 2f",
                "mov rdi, rax",
                "jmp rdx",
                "2:",
                "ret",
                ask = sym $ask,
            )
        }
    )*};
}

detour! {
    dlopen(*const c_char, c_int) => open;
    dlsym(*mut c_void, *const c_char) => find;
}

fn several_nodes() -> Option<&'static Node> {
    Node::current().filter(|node| node.nodes() > 1)
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, caller: usize) -> Detour {
    error::clear();
    let real = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void);
    let go_on = Detour { value: path as usize, function: real as usize };
    let Some(node) = several_nodes().filter(|_| !path.is_null()) else { return go_on };
    // SAFETY: the caller passes a string.
    let name = unsafe { CStr::from_ptr(path) };
    let Some(file) = search::library_of_program(name, caller) else {
        load::touch_stack();
        return go_on;
    };
    match request::ask(node, Operation::Open, flags, 0, &file) {
        Ok(handle) => Detour::done(handle),
        Err(sentence) => Detour::fail(sentence),
    }
}

unsafe extern "C" fn find(handle: usize, name: *const c_char, _caller: usize) -> Detour {
    let go_on = |handle| Detour { value: handle, function: load::real_dlsym() };
    let Some(node) = several_nodes().filter(|node| node.is_shared(handle)) else { return go_on(handle) };
    error::clear();
    if node.is_first() {
        return load::real_handle(handle).map_or_else(|| Detour::fail(load::not_a_library(handle)), go_on);
    }
    // SAFETY: the caller passes a string.
    let name = unsafe { CStr::from_ptr(name) };
    match request::ask(node, Operation::Find, 0, handle, name) {
        Ok(address) => Detour::done(address),
        Err(sentence) => Detour::fail(sentence),
    }
}

/// A library of the program's own stays until the end: threads of all nodes may be in its code.
///
/// # Safety
/// As the C library's `dlclose`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    if several_nodes().is_some_and(|node| node.is_shared(handle as usize)) {
        return 0;
    }
    // SAFETY: forwards the caller's argument.
    unsafe { crate::real!(dlclose: fn(*mut c_void) -> c_int)(handle) }
}

/// # Safety
/// As the C library's `dlinfo`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlinfo(handle: *mut c_void, request: c_int, result: *mut c_void) -> c_int {
    let mut handle = handle;
    if several_nodes().is_some_and(|node| node.is_shared(handle as usize)) {
        match load::real_handle(handle as usize) {
            Some(real) => handle = real as *mut c_void,
            None => {
                error::set(
                    "dlinfo: node 0 alone knows more of a library that was loaded during the run".into(),
                );
                return -1;
            }
        }
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { crate::real!(dlinfo: fn(*mut c_void, c_int, *mut c_void) -> c_int)(handle, request, result) }
}
