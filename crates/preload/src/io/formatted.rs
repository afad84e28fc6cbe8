//! What `printf` would print, in private memory.

use libc::{c_char, c_int, c_void};

/// The text of a format with its arguments, or what the C library's function gives when it fails.
///
/// # Safety
/// The format is a string, and the list has its arguments.
pub(super) unsafe fn formatted(format: *const c_char, arguments: *mut c_void) -> Result<Vec<u8>, c_int> {
    /// The structure behind a `va_list` on x86-64. `va_copy` copies it.
    type Arguments = [u64; 3];
    let real = crate::real!(vsnprintf: fn(*mut c_char, usize, *const c_char, *mut c_void) -> c_int);
    // SAFETY: as promised.
    let arguments = unsafe { arguments.cast::<Arguments>().read() };
    let mut text = vec![0_u8; 512];
    loop {
        let mut copy = arguments;
        // SAFETY: the text has room for as many bytes as is said, and the arguments are those of the format.
        let length =
            unsafe { real(text.as_mut_ptr().cast(), text.len(), format, (&raw mut copy).cast::<c_void>()) };
        let length = usize::try_from(length).map_err(|_| length)?;
        if length < text.len() {
            text.truncate(length);
            return Ok(text);
        }
        text.resize(length + 1, 0);
    }
}
