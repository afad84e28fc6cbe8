//! Barriers.

use super::between_processes::{is_in_common_file, is_said_of_barrier};
use libc::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};

crate::shared_or_real! {
    fn pthread_barrier_init(barrier: *mut pthread_barrier_t, attributes: *const pthread_barrierattr_t, count: c_uint)
        -> c_int = |node| {
        // SAFETY: the caller passes null or valid attributes.
        if is_in_common_file(node, barrier as usize) && unsafe { is_said_of_barrier(attributes) } {
            // SAFETY: forwards the caller's arguments.
            return unsafe {
                crate::real!(
                    pthread_barrier_init: fn(*mut pthread_barrier_t, *const pthread_barrierattr_t, c_uint) -> c_int
                )(barrier, attributes, count)
            };
        }
        if count == 0 || count > i32::MAX as u32 {
            libc::EINVAL
        } else {
            // The program's memory holds only the count, which each arrival sends. SAFETY: the object is the
            // caller's, and longer than this.
            unsafe { barrier.cast::<c_uint>().write(count) };
            0
        }
    };
    fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int = |_node| 0;
    fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int = |node| {
        // SAFETY: `pthread_barrier_init` has put the count there.
        let count = unsafe { barrier.cast::<c_uint>().read_volatile() };
        if node.barrier_wait(barrier as usize, count) { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
    };
}
