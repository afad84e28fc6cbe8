//! C++'s `operator new`, if it is the C++ library's own: a block is then known by the call in the program. Without memory,
//! the C++ library's operator is called, which throws.

use crate::{heap, start};
use gondwana_interpose::{MALLOC_ALIGNMENT, Next, Operator};
use libc::c_void;

gondwana_interpose::operators! {
    new: new,
    new_aligned: new_aligned,
    next: address_of_next,
}

/// The memory, or null to call the next operator.
extern "C" fn new(size: usize, _: usize, operator: &Operator, slot: *const usize) -> *mut c_void {
    new_aligned(size, MALLOC_ALIGNMENT, operator, slot)
}

/// As [`new`], for an alignment.
extern "C" fn new_aligned(
    size: usize,
    alignment: usize,
    operator: &Operator,
    slot: *const usize,
) -> *mut c_void {
    if !next(operator, slot).is_plain {
        return std::ptr::null_mut();
    }
    // Empty blocks have addresses of their own, too.
    heap::allocate(size.max(1), alignment, false, slot)
}

extern "C" fn address_of_next(operator: &Operator, slot: *const usize) -> usize {
    next(operator, slot).address
}

/// The next operator, for the call whose return address is at `slot`.
fn next(operator: &Operator, slot: *const usize) -> Next {
    let found = operator.known().or_else(|| {
        // SAFETY: the call has not returned yet.
        operator.find(unsafe { *slot })
    });
    found.unwrap_or_else(|| start::die(&format!("no C++ library has {}", operator.name().to_string_lossy())))
}
