//! Loading a library of the program's own: on node 0.

use super::gaps::Filler;
use super::{error, replica, search};
use gondwana_elf::LibraryFile;
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_locks::lock;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node};
use libc::{Elf64_Phdr, c_char, c_int, c_void, pthread_mutex_t};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A library that was loaded.
struct Library {
    path: PathBuf,
    /// The program's handle on all nodes: an address in shared memory.
    handle: usize,
    /// The loader's handle.
    real: usize,
}

static LOADED: Mutex<Vec<Library>> = Mutex::new(vec![]);

/// One library is loaded after the other, but a constructor may load further ones.
struct Loading(UnsafeCell<pthread_mutex_t>);

// SAFETY: the C library's mutex is made to be used by several threads.
unsafe impl Sync for Loading {}

static LOADING: Loading = Loading(UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP));

impl Loading {
    fn alone<R>(&self, call: impl FnOnce() -> R) -> R {
        // SAFETY: the mutex lives as long as the process, and is private to it.
        unsafe { crate::real!(pthread_mutex_lock: fn(*mut pthread_mutex_t) -> c_int)(self.0.get()) };
        let result = call();
        // SAFETY: as above; this thread has locked it.
        unsafe { crate::real!(pthread_mutex_unlock: fn(*mut pthread_mutex_t) -> c_int)(self.0.get()) };
        result
    }
}

/// Pages of the stack that the loader's own system calls may write to.
const STACK_PAGES: usize = 16;

/// The kernel may align mappings of long files to this.
const HUGE_PAGE: usize = 2 << 20;

/// Makes the part of the stack present that the loader will use: the kernel cannot write to an absent page.
#[inline(never)]
pub(super) fn touch_stack() {
    let mut frame = [0u8; STACK_PAGES * PAGE_SIZE];
    for at in (0..frame.len()).step_by(PAGE_SIZE) {
        // SAFETY: within the array.
        unsafe { frame.as_mut_ptr().add(at).write_volatile(1) };
    }
}

/// The loader's handle for a handle of this module; on node 0 only.
pub(super) fn real_handle(handle: usize) -> Option<usize> {
    let loaded = lock(&LOADED);
    loaded.iter().find(|library| library.handle == handle).map(|library| library.real)
}

fn handle_of(path: &Path) -> Option<usize> {
    let loaded = lock(&LOADED);
    loaded.iter().find(|library| library.path == path).map(|library| library.handle)
}

/// Opens a library for all nodes.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn open(node: &'static Node, path: &Path, flags: c_int) -> Result<usize, String> {
    LOADING.alone(|| open_alone(node, path, flags))
}

fn open_alone(node: &'static Node, path: &Path, flags: c_int) -> Result<usize, String> {
    if let Some(handle) = handle_of(path) {
        return Ok(handle);
    }
    if flags & libc::RTLD_NOLOAD != 0 {
        return Ok(0);
    }
    let refuse = |why: &str| {
        let sentence = format!("dlopen({}): {why}; link the program with it instead", path.display());
        node.refuse(&sentence);
        sentence
    };
    let file = LibraryFile::read(path).ok_or_else(|| format!("{}: no ELF library", path.display()))?;
    if file.has_thread_locals {
        return Err(refuse("the library has thread-local variables, which only node 0 would have"));
    }
    if node.relies_on_no_atomics() && has_atomics(path) {
        let sentence = format!(
            "dlopen({}): the library has atomic instructions, and the program had none; run it with --consistency sc",
            path.display()
        );
        node.refuse(&sentence);
        return Err(sentence);
    }
    for name in &file.needed {
        let text = CString::new(name.as_str()).unwrap_or_default();
        if search::is_from_start(&text) {
            continue;
        }
        let Some(needed) = search::needed_by(path, &text) else {
            return Err(refuse(&format!("the library needs {name}, which the other nodes do not have")));
        };
        open_alone(node, &needed, flags)?;
    }
    let room = file.length + slack(&file);
    let start = node.map_pages(room, Caller::NONE).ok_or("out of memory")?;
    let hole = start..start + room;
    // SAFETY: the pages were just allocated, so nobody uses them.
    if !unsafe { node.exclude_pages(hole.clone()) } {
        return Err("out of memory".to_owned());
    }
    let real = load_into(&hole, path, flags)?;
    // SAFETY: the loader's handle for it is closed only where nothing is found.
    let Some(object) = unsafe { loaded::select(|object| object.is_in(&hole)) }.pop() else {
        // SAFETY: the handle was just obtained.
        unsafe { crate::real!(dlclose: fn(*mut c_void) -> c_int)(real as *mut c_void) };
        return Err(refuse("the loader found no place for it that is free on all nodes"));
    };
    let handle = node.allocate(size_of::<usize>(), 16, Caller::NONE).ok_or("out of memory")?;
    share(node, &object).ok_or_else(|| refuse("the other nodes have no room for it"))?;
    lock(&LOADED).push(Library { path: path.to_owned(), handle, real });
    Ok(handle)
}

/// True if a library has, or may have, atomic instructions.
fn has_atomics(path: &Path) -> bool {
    let findings = std::fs::read(path).ok().and_then(|image| gondwana_atomics::scan(&image).ok());
    findings.is_none_or(|findings| !findings.atomics.is_empty())
}

/// Free bytes needed besides the library: the loader and, for long files, the kernel reserve more to align it.
fn slack(file: &LibraryFile) -> usize {
    let round = if file.length >= HUGE_PAGE { HUGE_PAGE } else { 0 };
    round.max(if file.align > PAGE_SIZE { file.align } else { 0 })
}

/// Has the loader load a library into a hole of the span.
fn load_into(hole: &Range<usize>, path: &Path, flags: c_int) -> Result<usize, String> {
    let text = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    let filler = Filler::above(hole.end, hole.len()).ok_or("out of memory")?;
    touch_stack();
    // The code must be bound completely before it is copied.
    let flags = flags & !libc::RTLD_LAZY | libc::RTLD_NOW;
    // SAFETY: the path is a string.
    let real = unsafe { crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void)(text.as_ptr(), flags) };
    drop(filler);
    if !real.is_null() {
        return Ok(real as usize);
    }
    // SAFETY: `dlopen` has just failed, so there is a sentence.
    Err(unsafe { CStr::from_ptr(error::dlerror()) }.to_string_lossy().into_owned())
}

/// Makes a library's variables shared, and copies the rest of it to the other nodes.
fn share(node: &'static Node, object: &LoadedObject<'_>) -> Option<()> {
    let mut parts = vec![];
    for segment in object.loads() {
        let (private, shared) = divide(object, segment);
        if !private.is_empty() {
            parts.push((private, protection(segment)));
        }
        if !shared.is_empty() {
            // SAFETY: the loader has mapped the segment; nobody uses the library yet, so that it may be replaced
            // by what will be its variables for good.
            unsafe {
                let bytes = std::slice::from_raw_parts(shared.start as *const u8, shared.len()).to_vec();
                if !node.include_pages(shared.clone()) {
                    return None;
                }
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), shared.start as *mut u8, bytes.len());
            }
        }
    }
    replica::give(node, object, &parts)
}

/// The pages of a segment that hold code and constants, and those that hold variables.
fn divide(object: &LoadedObject<'_>, segment: &Elf64_Phdr) -> (Range<usize>, Range<usize>) {
    let Range { start, end } = object.range(segment);
    let (start, end) = (start & !(PAGE_SIZE - 1), end.next_multiple_of(PAGE_SIZE));
    if segment.p_flags & libc::PF_W == 0 {
        return (start..end, end..end);
    }
    let constants = object.read_only_pages().end;
    let middle = if (start..=end).contains(&constants) { constants } else { start };
    (start..middle, middle..end)
}

/// The loader's final protection of the private part of a segment.
fn protection(segment: &Elf64_Phdr) -> c_int {
    if segment.p_flags & libc::PF_X != 0 { libc::PROT_READ | libc::PROT_EXEC } else { libc::PROT_READ }
}

/// The address of a symbol of one of our libraries; on node 0 only.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn find(handle: usize, name: &CStr) -> Result<usize, String> {
    let handle = real_handle(handle).ok_or_else(|| not_a_library(handle))?;
    error::clear();
    // SAFETY: every C library has this type of `dlsym`. The handle is the loader's own. A symbol may well have the value 0: only `dlerror` tells.
    unsafe {
        let dlsym = std::mem::transmute::<
            usize,
            unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
        >(real_dlsym());
        error::dlerror();
        let address = dlsym(handle as *mut c_void, name.as_ptr());
        let sentence = error::dlerror();
        if sentence.is_null() {
            return Ok(address as usize);
        }
        Err(CStr::from_ptr(sentence).to_string_lossy().into_owned())
    }
}

/// The sentence for a handle that is none of ours.
pub(super) fn not_a_library(handle: usize) -> String {
    format!("{handle:#x} is no library that was opened")
}

/// The C library's `dlsym`, looked up by its version with `dlvsym`.
pub(super) fn real_dlsym() -> usize {
    unsafe extern "C" {
        fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    }
    // SAFETY: both are strings. Every C library for x86-64 has this version of the function.
    unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), c"GLIBC_2.2.5".as_ptr()) as usize }
}
