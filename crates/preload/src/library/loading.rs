//! What is done to a library between the loader's mapping and its relocation: see [`LoadedObject::prepare`].
//!
//! The loader allocates memory after it has mapped a library and all that this needs, and before it relocates them. By that it calls
//! [`step`].

use super::error;
use crate::alloc::{Purpose, with_purpose};
use crate::main_thread;
use gondwana_elf::loaded::{self, LoadedObject, Preparation, Prepared};
use libc::{c_char, c_int, c_void};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

/// What one thread is loading.
pub(super) struct Loading {
    /// The bases of all objects that were there before.
    before: Vec<usize>,
    /// Their initialisers do not run.
    holds: bool,
    prepared: Vec<Preparation>,
}

/// A thread-local variable at the start of a page. The C library gives libraries that are opened no place in the block of each thread if their
/// variables have a larger alignment than those of all that was there from the start.
#[repr(align(4096))]
struct AtPage<T>(T);

thread_local! {
    static PRESENT: AtPage<Cell<*mut Loading>> = const { AtPage(Cell::new(null_mut())) };
}

/// Has the loader of this node load a library. Its handle, or what the loader says.
pub(super) fn load(path: &Path, flags: c_int) -> Result<usize, String> {
    let loaded = load_once(path, flags);
    // It can make the stack of the process's first thread executable, as the system allows for that one only.
    let refused = |sentence: &String| sentence.contains("cannot enable executable stack");
    if loaded.as_ref().err().is_some_and(refused) {
        return main_thread::on_first_stack(|| load_once(path, flags));
    }
    loaded
}

fn load_once(path: &Path, flags: c_int) -> Result<usize, String> {
    let text = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    let dlopen = crate::real!(dlopen: fn(*const c_char, c_int) -> *mut c_void);
    // SAFETY: the path is a string. If there is a sentence, it lives until the next call.
    unsafe {
        let handle = dlopen(text.as_ptr(), flags);
        if !handle.is_null() {
            return Ok(handle as usize);
        }
        // At once: the next look-up of a function clears it.
        let sentence = error::dlerror();
        if sentence.is_null() {
            return Err(path.display().to_string());
        }
        Err(CStr::from_ptr(sentence).to_string_lossy().into_owned())
    }
}

/// Calls a function that has the loader load libraries.
pub(super) fn during<R>(holds: bool, call: impl FnOnce() -> R) -> (R, Loading) {
    let mut loading = Loading { before: vec![], holds, prepared: vec![] };
    loaded::visit(|object| {
        loading.before.push(object.base());
        ControlFlow::<()>::Continue(())
    });
    let before = set_present(&raw mut loading);
    let result = with_purpose(Purpose::Loading, call);
    set_present(before);
    (result, loading)
}

/// The loader goes on with what it does for this thread.
pub(crate) fn step() {
    let present = set_present(null_mut());
    if present.is_null() {
        return;
    }
    with_purpose(Purpose::Own, || {
        // SAFETY: `during` waits in its call, on this thread.
        let loading = unsafe { &mut *present };
        loaded::visit(|object| {
            let is_prepared = || loading.prepared.iter().any(|preparation| preparation.is_of(object));
            if loading.is_new(object) && !is_prepared() {
                // SAFETY: the loader has just mapped the object: it was not there at the last step. `finish` is called when it has loaded it.
                loading.prepared.push(unsafe { object.prepare(loading.holds) });
            }
            ControlFlow::<()>::Continue(())
        });
    });
    set_present(present);
}

/// What the calling thread loads from now on. Returns what it has loaded until now.
fn set_present(present: *mut Loading) -> *mut Loading {
    PRESENT.with(|AtPage(cell)| cell.replace(present))
}

/// True while the calling thread has the loader load libraries.
pub(super) fn is_under_way() -> bool {
    !PRESENT.with(|AtPage(cell)| cell.get()).is_null()
}

impl Loading {
    fn is_new(&self, object: &LoadedObject<'_>) -> bool {
        !self.before.contains(&object.base())
    }

    /// The libraries that were loaded.
    ///
    /// # Safety
    /// They stay loaded as long as the result is used.
    pub(super) unsafe fn objects(&self) -> Vec<LoadedObject<'static>> {
        // SAFETY: the caller's promise.
        unsafe { loaded::select(|object| self.is_new(object)) }
    }

    /// What came of one of the libraries; `None` if the loader has not allowed it to be prepared.
    ///
    /// # Safety
    /// The loader has loaded the library, and no other thread uses it.
    pub(super) unsafe fn finish(&mut self, object: &LoadedObject<'_>) -> Option<Prepared> {
        let index = self.prepared.iter().position(|preparation| preparation.is_of(object))?;
        // SAFETY: the caller's promise.
        Some(unsafe { object.finish(self.prepared.swap_remove(index)) })
    }
}
