//! C++'s `operator new`, if it is the C++ library's own. Calls that match no rule go to the next operator.

use crate::malloc::placed;
use crate::{inside, message};
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
    // SAFETY: the operator has not returned yet.
    let caller = unsafe { *slot };
    let next = next(operator, caller);
    if !next.is_plain || !alignment.is_power_of_two() {
        return std::ptr::null_mut();
    }
    // Rules may name the operator itself: an address inside it stands for its call of `malloc`. Empty blocks have
    // unique addresses too.
    match placed(size.max(1), alignment, &[caller, next.address + 1]) {
        Some(block) => block.address as *mut c_void,
        None => std::ptr::null_mut(),
    }
}

extern "C" fn address_of_next(operator: &Operator, slot: *const usize) -> usize {
    // SAFETY: the operator has not returned yet.
    next(operator, unsafe { *slot }).address
}

/// The next operator in the search order of the calling code.
fn next(operator: &Operator, caller: usize) -> Next {
    operator.known().unwrap_or_else(|| find(operator, caller))
}

#[cold]
fn find(operator: &Operator, caller: usize) -> Next {
    // The loader may allocate during the lookup.
    let _inside = inside::enter();
    operator.find(caller).unwrap_or_else(|| {
        message::say(&format!("{}: no C++ library has this operator", operator.name().to_string_lossy()));
        std::process::abort()
    })
}
