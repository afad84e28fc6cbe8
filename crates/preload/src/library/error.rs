//! What `dlerror` says of failures that the C library does not know of.

use libc::c_char;
use std::cell::{Cell, RefCell};
use std::ffi::CString;

thread_local! {
    /// The sentence, kept until the next one because the program has its address.
    static SENTENCE: RefCell<CString> = RefCell::default();
    static PENDING: Cell<bool> = const { Cell::new(false) };
}

/// Has `dlerror` say this next.
pub fn set(sentence: String) {
    let sentence = CString::new(sentence).unwrap_or_default();
    SENTENCE.with(|place| *place.borrow_mut() = sentence);
    PENDING.set(true);
}

/// Forgets what `dlerror` was to say.
pub fn clear() {
    PENDING.set(false);
}

/// True if there is something to say that was not said yet.
pub fn is_pending() -> bool {
    PENDING.get()
}

/// What `dlerror` is to say. It counts as said.
pub fn take() -> *mut c_char {
    PENDING.set(false);
    SENTENCE.with(|place| place.borrow().as_ptr().cast_mut())
}
