//! Whether a thread is at work inside this library: what it allocates then, through the C library's functions, must not
//! come back here.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread is inside for as long as this lives.
pub struct Inside;

/// Goes inside; `None` if the calling thread is there already.
pub fn enter() -> Option<Inside> {
    // Not made at all if the thread is inside: dropping it would take the thread outside.
    if INSIDE.replace(true) { None } else { Some(Inside) }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}
