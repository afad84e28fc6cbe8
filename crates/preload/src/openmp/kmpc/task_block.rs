//! The memory of a task, as the compiler lays it out: a record with its function, its private data behind that, and a record of
//! addresses of shared data. In front is what the compiler does not know.

use crate::openmp::sync;
use libc::{c_int, c_void};
use std::ptr::null_mut;

/// The compiler's record of a task; the task's private data follow.
#[repr(C)]
pub(super) struct TaskRecord {
    pub shared: *mut c_void,
    /// Null where there is nothing to do, as for `taskwait nowait`.
    pub routine: Option<Routine>,
    part: c_int,
    /// The function that destroys the private data, if it has one.
    pub destroy: usize,
    more: usize,
}

/// The function of a task.
pub(super) type Routine = unsafe extern "C" fn(c_int, *mut TaskRecord) -> c_int;

/// In front of the record.
#[repr(C, align(16))]
struct Header {
    /// Of all that follows.
    bytes: usize,
    /// Where the record of shared data is; 0 for none.
    shared: usize,
    flags: c_int,
    /// The task's event; 0 for none.
    event: u64,
}

/// Bits that the compiler passes.
pub(super) mod flag {
    use libc::c_int;

    pub(crate) const FINAL: c_int = 2;
    pub(crate) const DESTROY: c_int = 8;
}

/// Memory for a task.
pub(super) fn create(flags: c_int, bytes: usize, shared: usize, routine: Option<Routine>) -> *mut TaskRecord {
    let start = bytes.max(size_of::<TaskRecord>()).next_multiple_of(16);
    let header =
        Header { bytes: start + shared, shared: if shared > 0 { start } else { 0 }, flags, event: 0 };
    let record = allocate(header);
    // SAFETY: the block was made for it, and for the record of shared data.
    unsafe {
        let shared = shared_of(record);
        record.write(TaskRecord { shared, routine, part: 0, destroy: 0, more: 0 });
    }
    record
}

fn allocate(header: Header) -> *mut TaskRecord {
    let place = sync::allocate(size_of::<Header>() + header.bytes, align_of::<Header>()).cast::<Header>();
    // SAFETY: the block was made for the header and what follows.
    unsafe {
        place.write(header);
        place.add(1).cast()
    }
}

/// # Safety
/// The record is of [`create`] or [`duplicate`].
unsafe fn header(record: *mut TaskRecord) -> *mut Header {
    // SAFETY: the caller's promise.
    unsafe { record.cast::<Header>().sub(1) }
}

/// # Safety
/// As for [`header`].
unsafe fn shared_of(record: *mut TaskRecord) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        match (*header(record)).shared {
            0 => null_mut(),
            place => record.byte_add(place).cast(),
        }
    }
}

/// The flags of [`create`].
///
/// # Safety
/// As for [`header`].
pub(super) unsafe fn flags(record: *mut TaskRecord) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (*header(record)).flags }
}

/// The place of a task's event, which is 0 for none.
///
/// # Safety
/// As for [`header`].
pub(super) unsafe fn event(record: *mut TaskRecord) -> *mut u64 {
    // SAFETY: the caller's promise.
    unsafe { &raw mut (*header(record)).event }
}

/// A copy of a task that has not run.
///
/// # Safety
/// As for [`header`].
pub(super) unsafe fn duplicate(record: *mut TaskRecord) -> *mut TaskRecord {
    // SAFETY: the caller's promise; both blocks have the same length.
    unsafe {
        let Header { bytes, shared, flags, event } = header(record).read();
        let copy = allocate(Header { bytes, shared, flags, event });
        std::ptr::copy_nonoverlapping(record.cast::<u8>(), copy.cast(), bytes);
        if (*record).shared == shared_of(record) {
            (*copy).shared = shared_of(copy);
        }
        copy
    }
}

/// Frees a task that has run.
///
/// # Safety
/// As for [`header`].
pub(super) unsafe fn discard(record: *mut TaskRecord) {
    // SAFETY: the caller's promise.
    sync::discard(unsafe { header(record) });
}
