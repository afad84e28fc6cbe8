//! What `dlerror` says of failures that the C library does not know of.

use libc::c_char;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};

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

/// The C library's `dlerror`.
pub fn real_dlerror() -> unsafe extern "C" fn() -> *mut c_char {
    crate::real!(dlerror: fn() -> *mut c_char)
}

/// # Safety
/// As the C library's `dlerror`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlerror() -> *mut c_char {
    if !is_pending() {
        // SAFETY: forwards the call; the C library gives null or a string.
        unsafe {
            let text = real_dlerror()();
            if text.is_null() {
                return text;
            }
            // Ours lasts: the C library's is gone when this library looks up a function.
            set(CStr::from_ptr(text).to_string_lossy().into_owned());
        }
    }
    take()
}
