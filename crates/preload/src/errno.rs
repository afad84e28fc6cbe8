//! The C library's `errno` of the calling thread.

/// Its value.
pub fn get() -> i32 {
    // SAFETY: the C library's own location, valid as long as the thread.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub fn set(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}
