//! The messages of `dlerror` for failures that the C library does not know.

use libc::c_char;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};

thread_local! {
    /// The message, kept until the next one because the program has its address.
    static SENTENCE: RefCell<CString> = RefCell::default();
    static PENDING: Cell<bool> = const { Cell::new(false) };
}

/// Sets the next message of `dlerror`.
pub(super) fn set(sentence: String) {
    let sentence = CString::new(sentence).unwrap_or_default();
    SENTENCE.with(|place| *place.borrow_mut() = sentence);
    PENDING.set(true);
}

/// Clears the message of `dlerror`.
pub(super) fn clear() {
    PENDING.set(false);
}

/// True if there is a message that was not returned yet.
pub(super) fn is_pending() -> bool {
    PENDING.get()
}

/// Takes the message for `dlerror`.
pub(super) fn take() -> *mut c_char {
    PENDING.set(false);
    SENTENCE.with(|place| place.borrow().as_ptr().cast_mut())
}

/// The C library's `dlerror`.
pub(super) fn real_dlerror() -> unsafe extern "C" fn() -> *mut c_char {
    crate::real!(dlerror: fn() -> *mut c_char)
}

/// # Safety
/// As the C library's `dlerror`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dlerror() -> *mut c_char {
    if !is_pending() {
        // SAFETY: forwards the call; the C library gives null or a string.
        unsafe {
            let text = real_dlerror()();
            if text.is_null() {
                return text;
            }
            // A copy: the C library's message is lost when this library looks up a function.
            set(CStr::from_ptr(text).to_string_lossy().into_owned());
        }
    }
    take()
}
