//! Libraries that the program loads while it runs.
//!
//! They are loaded on one node only, and what they write to their own variables stays there. System libraries are
//! used like that on purpose; a library of the program's own would silently have a state of its own on each node.

use gondwana_memory::is_system_library;
use gondwana_node::Node;
use libc::{c_char, c_int, c_void};
use std::arch::naked_asm;
use std::ffi::CStr;
use std::fs;
use std::path::Path;

/// Bytes that the compiler's start-up code alone takes of a library's `.data` (a handle) or `.bss` (a mark that its
/// destructors have run), padding included.
const START_UP_BYTES: u64 = 8;

/// What `dlopen` is told to open in place of a library that is refused, so that `dlerror` has something to say.
const REFUSED: &CStr =
    c"/refused: a library with variables of its own, loaded while the program runs on several nodes";

/// True for a library file that has variables. What cannot be understood is left to the loader to judge.
fn has_variables(path: &Path) -> bool {
    fs::read(path).ok().and_then(|file| largest_variables(&file)).is_some_and(|bytes| bytes > START_UP_BYTES)
}

/// The size of the larger section of a 64-bit ELF file among those that its own code may write to: neither the
/// loader makes them read-only nor fills them in itself.
fn largest_variables(file: &[u8]) -> Option<u64> {
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    if file.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let (table, entry, count) =
        (number(0x28, 8)? as usize, number(0x3a, 2)? as usize, number(0x3c, 2)? as usize);
    let section = |index: usize| table.checked_add(index.checked_mul(entry)?);
    let names = number(section(number(0x3e, 2)? as usize)? + 0x18, 8)? as usize;
    let mut largest = 0;
    for index in 0..count {
        let header = section(index)?;
        let name = file.get(names + number(header, 4)? as usize..)?;
        if [b".data\0".as_slice(), b".bss\0"].iter().any(|wanted| name.starts_with(wanted)) {
            largest = largest.max(number(header + 0x20, 8)?);
        }
    }
    Some(largest)
}

/// The path to open: the given one, unless the library is refused.
unsafe extern "C" fn permitted(path: *const c_char) -> *const c_char {
    let Some(node) = Node::current().filter(|node| node.nodes() > 1 && !path.is_null()) else { return path };
    // SAFETY: the caller of `dlopen` passes a string.
    let name = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    // Other names are looked for among the system's libraries.
    if !name.contains('/') {
        return path;
    }
    match fs::canonicalize(&*name) {
        Ok(found) if !is_system_library(&found) && !is_loaded(path) && has_variables(&found) => {
            node.refuse(&format!(
                "dlopen({name}): the library has variables of its own, which the nodes would not share; link the \
                 program with it instead"
            ));
            REFUSED.as_ptr()
        }
        _ => path,
    }
}

/// True for a library that was there from the start, and whose variables are therefore shared.
fn is_loaded(path: *const c_char) -> bool {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: the path is a string; nothing new is loaded, and the reference is given back.
    unsafe {
        let library = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void)(path, flags);
        !library.is_null() && libc::dlclose(library) == 0
    }
}

unsafe extern "C" fn real_address() -> usize {
    let real = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void);
    real as usize
}

/// Goes on to the C library's `dlopen` by a jump: that looks at its return address to know for whom it searches.
///
/// # Safety
/// As the C library's `dlopen`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "push rsi",
        "call {permitted}",
        "push rax",
        "sub rsp, 8",
        "call {real}",
        "add rsp, 8",
        "pop rdi",
        "pop rsi",
        "jmp rax",
        permitted = sym permitted,
        real = sym real_address,
    )
}
