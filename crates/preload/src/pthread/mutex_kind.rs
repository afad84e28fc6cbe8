//! The kind of a mutex, as the C library writes it into its memory.

use gondwana_interpose::KINDS;
use gondwana_node::MutexKind;
use libc::{c_int, pthread_mutex_t};

/// The kind in the memory of a mutex. `mutex` is the program's pointer.
pub(super) fn kind_bits(mutex: *const pthread_mutex_t) -> c_int {
    // SAFETY: the caller of the wrapped function passes a mutex.
    unsafe { gondwana_interpose::kind_bits(mutex) }
}

/// A function that reads the kind in the memory of a mutex. `mutex` is the program's pointer.
pub(super) fn kind_of(mutex: *const pthread_mutex_t) -> impl Fn() -> MutexKind + Copy {
    move || match kind_bits(mutex) & KINDS {
        libc::PTHREAD_MUTEX_RECURSIVE => MutexKind::Recursive,
        libc::PTHREAD_MUTEX_ERRORCHECK => MutexKind::ErrorCheck,
        _ => MutexKind::Normal,
    }
}
