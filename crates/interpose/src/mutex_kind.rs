//! The kind of a mutex, as the C library writes it into its memory.

use libc::{c_int, pthread_mutex_t};

/// The offset of a mutex's kind in the C library's structure; initialisation writes it there.
const KIND_OFFSET: usize = 16;

/// The bits that tell normal, recursive and error-checking mutexes apart.
pub const KINDS: c_int = 3;

/// The kind in the memory of a mutex, with what else the C library notes there.
///
/// # Safety
/// A mutex is there: initialised by the C library or its macros, or zero.
#[must_use]
pub unsafe fn kind_bits(mutex: *const pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises: a mutex is longer than this and aligned for it.
    unsafe { mutex.cast::<u8>().add(KIND_OFFSET).cast::<c_int>().read_volatile() }
}
