//! The kind of a mutex, as the C library writes it into its memory.

use gondwana_node::MutexKind;
use libc::{c_int, pthread_mutex_t};

/// The offset of a mutex's kind in the C library's structure; initialisation writes it there.
const KIND_OFFSET: usize = 16;

/// The kind in the memory of a mutex. `mutex` is the program's pointer.
pub(super) fn kind_bits(mutex: *const pthread_mutex_t) -> c_int {
    // SAFETY: the caller of the wrapped function passes a mutex, which is longer than this and aligned for it.
    unsafe { mutex.cast::<u8>().add(KIND_OFFSET).cast::<c_int>().read_volatile() }
}

/// A function that reads the kind in the memory of a mutex. `mutex` is the program's pointer.
pub(super) fn kind_of(mutex: *const pthread_mutex_t) -> impl Fn() -> MutexKind + Copy {
    move || match kind_bits(mutex) & 3 {
        libc::PTHREAD_MUTEX_RECURSIVE => MutexKind::Recursive,
        libc::PTHREAD_MUTEX_ERRORCHECK => MutexKind::ErrorCheck,
        _ => MutexKind::Normal,
    }
}
