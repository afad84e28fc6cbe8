//! Errors and remarks, as programs in C read them.

use libc::{c_char, c_int};
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What `errno` becomes.
    pub number: c_int,
    /// One sentence with the part that is at fault, without a full stop.
    pub sentence: String,
}

impl Error {
    /// An error with this number of `errno.h`.
    pub fn new(number: c_int, sentence: impl Into<String>) -> Self {
        Self { number, sentence: sentence.into() }
    }

    /// The error of a system call, with what it was to do.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        Self::new(error.raw_os_error().unwrap_or(libc::EIO), format!("{what}: {error}"))
    }

    /// An argument makes no sense.
    pub(crate) fn invalid(sentence: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, sentence)
    }
}

/// Bytes of a sentence that are kept, with the NUL at the end.
const ROOM: usize = 512;

/// A sentence where C can read it. Fixed room, without a destructor: it can be read as long as its thread runs.
struct Text([u8; ROOM]);

impl Text {
    const EMPTY: Self = Self([0; ROOM]);

    fn set(&mut self, sentence: &str) {
        let mut length = sentence.len().min(ROOM - 1);
        while !sentence.is_char_boundary(length) {
            length -= 1;
        }
        // A line break or a NUL, as part of what the caller has passed, must not end the sentence early.
        let printable = |byte: &u8| if byte.is_ascii_control() { b' ' } else { *byte };
        let bytes = sentence.as_bytes()[..length].iter().map(printable);
        self.0.iter_mut().zip(bytes.chain([0])).for_each(|(to, from)| *to = from);
    }
}

thread_local! {
    static ERROR: RefCell<Text> = const { RefCell::new(Text::EMPTY) };
    static REMARK: RefCell<Text> = const { RefCell::new(Text::EMPTY) };
}

/// What the calling thread's last failed call says.
pub(crate) fn message() -> *const c_char {
    ERROR.with(|text| text.as_ptr().cast())
}

/// What the calling thread's last call that could say something says.
pub(crate) fn remark() -> *const c_char {
    REMARK.with(|text| text.as_ptr().cast())
}

/// Keeps what could not be had for the calling thread; nothing if everything is as asked for.
pub(crate) fn keep_remarks(remarks: &[String]) {
    REMARK.with(|text| text.borrow_mut().set(&remarks.join("; ")));
}

/// Runs a call on behalf of C: its result, or `failed` with `errno` and the message set. Nothing unwinds into C.
pub(crate) fn call<T>(failed: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Error::new(libc::ENOTRECOVERABLE, "an error inside the library of Gondwana: please report it"))
    });
    result.unwrap_or_else(|error| {
        ERROR.with(|text| text.borrow_mut().set(&error.sentence));
        // SAFETY: the C library gives each thread a place for its error.
        unsafe { *libc::__errno_location() = error.number };
        failed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text(pointer: *const c_char) -> &'static str {
        // SAFETY: the texts of this thread end with NUL and live as long as the test.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap()
    }

    #[test]
    fn the_last_error_of_the_thread_is_kept() {
        assert_eq!(call(-1, || Ok(7)), 7);
        assert_eq!(call(-1, || Err(Error::invalid("no node\t9"))), -1);
        assert_eq!(text(message()), "no node 9");
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
        std::thread::spawn(|| assert_eq!(text(message()), "")).join().unwrap();
    }

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(call(-1, || panic!("a mistake")), -1);
        assert!(text(message()).contains("inside the library"));
    }

    #[test]
    fn long_sentences_end_between_characters() {
        keep_remarks(&["x".to_owned(), "é".repeat(ROOM)]);
        let kept = text(remark());
        assert!(kept.starts_with("x; é") && kept.len() >= ROOM - 2 && kept.len() < ROOM, "{kept}");
        keep_remarks(&[]);
        assert_eq!(text(remark()), "");
    }
}
