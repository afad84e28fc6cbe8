//! Libraries that the program loads while it runs.
//!
//! The loader of node 0 loads a library, with what it needs, at addresses of the span. Before anything of it runs, its variables become
//! shared, and the loaders of the other nodes load a [copy](replica) of what that of node 0 has made of it. Then the thread that has
//! asked for the library runs its initialisers. Node 0 answers queries of threads of other nodes. Libraries of the language runtimes are
//! loaded by the loader of each node on its own, at the start or when one is [first needed](runtime).

mod companions;
mod error;
mod gaps;
mod image;
mod initialisers;
mod interposed;
mod load;
mod loading;
mod locals;
mod opened;
mod replica;
mod request;
mod runtime;
mod search;

pub(crate) use loading::step as loader_goes_on;

use crate::process;
use gondwana_node::{MutexKind, Node, Thread};
use gondwana_page::{PAGE_SIZE, to_usize};
use libc::{c_char, c_int, c_void};
use request::{Answer, Operation};
use std::arch::naked_asm;
use std::ffi::{CStr, CString};

/// Records the libraries that are loaded before the program runs.
pub(crate) fn begin() {
    search::begin();
    // A later lookup would clear its message.
    error::real_dlerror();
}

/// Keeps the arguments of the program for initialisers; on node 0 only.
///
/// # Safety
/// There are so many arguments.
pub(crate) unsafe fn keep_arguments(node: &'static Node, argc: usize, argv: *mut *mut c_char) {
    // SAFETY: the caller's promise.
    unsafe { initialisers::keep_arguments(node, argc, argv) };
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

/// Defines an exported function of up to three arguments that calls a helper with them and its return address. If the helper says so,
/// it jumps to the C library's function, which uses its return address to identify the caller.
macro_rules! detour {
    ($($name:ident($($type:ty),*) => $ask:path;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($(_: $type),*) -> *mut c_void {
            naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "mov rcx, [rsp + 24]",
                "call {ask}",
                "mov rcx, rdx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "test rcx, rcx",
                "jz 2f",
                "mov rdi, rax",
                "jmp rcx",
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
    dlvsym(*mut c_void, *const c_char, *const c_char) => find_version;
}

/// True if the calling thread makes calls of the program's, and none for a library that each node loads for itself.
pub(crate) fn calls_for_program() -> bool {
    Thread::is_of_program() && !loading::is_under_way()
}

fn several_nodes() -> Option<&'static Node> {
    Node::current().filter(|node| node.nodes() > 1)
}

/// Calls a function while no other thread of the run opens a library. An initialiser may open further ones.
fn alone<R>(node: &'static Node, call: impl FnOnce() -> R) -> R {
    // By an address that holds nothing, beside that of the process's own mutex.
    let mutex = node.library_page() + PAGE_SIZE - process::MUTEX_BYTES + size_of::<u64>();
    process::holding(node, mutex, MutexKind::Recursive, call)
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, _: usize, caller: usize) -> Detour {
    error::clear();
    let real = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void);
    let go_on = || {
        load::touch_stack();
        Detour { value: path as usize, function: real as usize }
    };
    let Some(node) = several_nodes() else { return go_on() };
    // SAFETY: the caller passes null or a string. The loader takes no name as the program itself.
    let name = if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } };
    if node.is_first() && (name.is_empty() || search::is_from_start(name)) {
        return go_on();
    }
    let answer = alone(node, || {
        let answer = request::ask(node, Operation::Open { flags, caller }, name);
        if let Ok(Answer::Library(_, initialisers)) = answer {
            // SAFETY: node 0 has listed them for this call, after all nodes have got the library.
            unsafe { initialisers::run(node, initialisers) };
        }
        answer
    });
    match answer {
        Ok(Answer::Library(handle, _)) => Detour::done(handle),
        Ok(_) => go_on(),
        Err(sentence) => Detour::fail(sentence),
    }
}

unsafe extern "C" fn find(handle: usize, name: *const c_char, _: usize, caller: usize) -> Detour {
    // SAFETY: the caller passes a string.
    let name = unsafe { CStr::from_ptr(name) };
    find_in(handle, Wanted { name, version: None, caller })
}

unsafe extern "C" fn find_version(
    handle: usize,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> Detour {
    // SAFETY: the caller passes strings.
    let (name, version) = unsafe { (CStr::from_ptr(name), CStr::from_ptr(version)) };
    find_in(handle, Wanted { name, version: Some(version), caller })
}

/// A symbol that code at `caller` looks up.
struct Wanted<'a> {
    name: &'a CStr,
    version: Option<&'a CStr>,
    caller: usize,
}

impl Wanted<'_> {
    /// The C library's function that looks it up.
    fn real(&self) -> usize {
        if self.version.is_none() { load::real_dlsym() } else { load::real_dlvsym() }
    }

    /// For node 0: the name, with the version behind `@` if one is wanted.
    fn text(&self) -> CString {
        let version = self.version.map(CStr::to_bytes);
        let parts: Vec<&[u8]> = [self.name.to_bytes()].into_iter().chain(version).collect();
        CString::new(parts.join(&b'@')).unwrap_or_default()
    }
}

/// Looks a symbol up.
fn find_in(handle: usize, wanted: Wanted<'_>) -> Detour {
    let go_on = || Detour { value: handle, function: wanted.real() };
    let Some(node) = several_nodes() else { return go_on() };
    if handle == libc::RTLD_NEXT as usize {
        return interposed::next(wanted.caller, wanted.name).map_or_else(go_on, Detour::done);
    }
    if handle == libc::RTLD_DEFAULT as usize {
        return go_on();
    }
    error::clear();
    let library = opened::with_handle(handle);
    let here = match &library {
        // The handles of libraries from the start are those of node 0's loader.
        None => node.is_first().then_some(handle),
        Some(library) => library.is_whole.then_some(library.real),
    };
    if library.is_none() && node.is_shared(handle) {
        return Detour::fail(load::not_a_library(handle));
    }
    if let Some(handle) = here {
        let found = load::find_here(handle, wanted.name, wanted.version);
        return Detour::done(interposed::in_place_of(found, wanted.name));
    }
    match request::ask(node, Operation::Find { handle }, &wanted.text()) {
        Ok(Answer::Symbol(address)) => Detour::done(interposed::in_place_of(address, wanted.name)),
        Ok(Answer::ThreadLocal(distance)) => {
            Detour::done(to_usize(crate::pthread::native_self()).wrapping_add(distance))
        }
        Ok(_) => Detour::done(0),
        Err(sentence) => Detour::fail(sentence),
    }
}

/// A library of the program's own stays until the end: threads of all nodes may be in its code.
///
/// # Safety
/// As the C library's `dlclose`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    if several_nodes().is_some_and(|node| !node.is_first() || node.is_shared(handle as usize)) {
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
    if several_nodes().is_some_and(|node| !node.is_first() || node.is_shared(handle as usize)) {
        match opened::with_handle(handle as usize) {
            Some(library) => handle = library.real as *mut c_void,
            None => {
                error::set(load::not_a_library(handle as usize));
                return -1;
            }
        }
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { crate::real!(dlinfo: fn(*mut c_void, c_int, *mut c_void) -> c_int)(handle, request, result) }
}
