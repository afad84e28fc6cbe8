//! What is done to a library between the loader's mapping and its relocation: see [`LoadedObject::prepare`].
//!
//! The loader allocates memory after it has mapped a library and all that this needs, and before it relocates them. By that it calls
//! [`step`].

use crate::alloc::{Purpose, with_purpose};
use gondwana_elf::loaded::{self, LoadedObject, Preparation, Prepared};
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::ptr::null_mut;

/// What one thread is loading.
pub(super) struct Loading {
    /// Where the libraries go.
    place: Range<usize>,
    /// Their initialisers do not run.
    holds: bool,
    prepared: Vec<Preparation>,
}

thread_local! {
    static PRESENT: Cell<*mut Loading> = const { Cell::new(null_mut()) };
}

/// Calls a function that has the loader load libraries into a place.
pub(super) fn during<R>(place: &Range<usize>, holds: bool, call: impl FnOnce() -> R) -> (R, Loading) {
    let mut loading = Loading { place: place.clone(), holds, prepared: vec![] };
    let before = PRESENT.replace(&raw mut loading);
    let result = with_purpose(Purpose::Loading, call);
    PRESENT.set(before);
    (result, loading)
}

/// The loader goes on with what it does for this thread.
pub(crate) fn step() {
    let present = PRESENT.replace(null_mut());
    if present.is_null() {
        return;
    }
    with_purpose(Purpose::Own, || {
        // SAFETY: `during` waits in its call, on this thread.
        let loading = unsafe { &mut *present };
        loaded::visit(|object| {
            let is_new = || !loading.prepared.iter().any(|preparation| preparation.is_of(object));
            if object.is_in(&loading.place) && is_new() {
                // SAFETY: the loader has just mapped the object: it was not there at the last step. `finish` is called when it has loaded it.
                loading.prepared.push(unsafe { object.prepare(loading.holds) });
            }
            ControlFlow::<()>::Continue(())
        });
    });
    PRESENT.set(present);
}

impl Loading {
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
