//! `single` with copyprivate: its thread gives the others its data.

use super::Place;
use crate::openmp::times::Ends;
use crate::openmp::{membership, single};
use libc::{c_int, c_void};

/// Copies the data of a thread from that of another one.
type CopyData = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_copyprivate(
    _place: Place,
    _thread: c_int,
    _size: usize,
    data: *mut c_void,
    copy: CopyData,
    is_first: c_int,
) {
    if is_first != 0 {
        single::give(data);
    } else {
        // SAFETY: the program passes its function and the data of both threads, which stays as it is until the barrier.
        unsafe { copy(data, single::take()) };
    }
    membership::barrier(Ends::Region);
}
