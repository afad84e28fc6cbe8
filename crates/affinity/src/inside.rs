//! Whether a thread is inside this library: its allocations through C library functions must then not use rules.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread is inside for as long as this lives.
pub(crate) struct Inside;

/// Goes inside; `None` if the calling thread is there already.
pub(crate) fn enter() -> Option<Inside> {
    // No value is made if the thread is already inside: dropping it would clear the flag.
    if INSIDE.replace(true) { None } else { Some(Inside) }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}
