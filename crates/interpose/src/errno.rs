//! The C library's `errno` of the calling thread.

use libc::c_int;

/// Its value.
#[must_use]
pub fn get() -> c_int {
    // SAFETY: the C library's own location, valid as long as the thread.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub fn set(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_that_was_set_is_read() {
        super::set(libc::ENOMEM);
        assert_eq!(super::get(), libc::ENOMEM);
        assert_eq!(std::io::Error::last_os_error().kind(), std::io::ErrorKind::OutOfMemory);
    }
}
