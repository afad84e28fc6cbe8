//! C++'s `operator new` and `operator delete`, if they are the C++ library's own, or those of an allocator: its `malloc` and `free` are
//! this library's, too. Without memory, the next operator is called: it calls the program's new-handler, and throws.

use crate::alloc::{allocate, allocate_aligned, free};
use crate::private_stack::uninterrupted;
use crate::report;
use gondwana_interpose::{Next, Operator};
use std::ffi::c_void;

gondwana_interpose::operators! {
    new: new,
    new_aligned: new_aligned,
    next: address_of_next,
}

gondwana_interpose::operators! {
    delete: delete,
    next: address_of_next,
}

/// The memory, or null to call the next operator.
extern "C" fn new(size: usize, _: usize, operator: &Operator, slot: *const usize) -> *mut c_void {
    if !is_replaced(next(operator, slot)) {
        return std::ptr::null_mut();
    }
    // SAFETY: plain allocation, for a call that waits. Empty blocks have unique addresses too.
    unsafe { allocate(size.max(1), slot) }
}

/// As [`new`], for an alignment.
extern "C" fn new_aligned(
    size: usize,
    alignment: usize,
    operator: &Operator,
    slot: *const usize,
) -> *mut c_void {
    if !is_replaced(next(operator, slot)) {
        return std::ptr::null_mut();
    }
    // SAFETY: plain allocation, for a call that waits.
    unsafe { allocate_aligned(alignment, size.max(1), slot) }
}

/// Frees a block; null if the next operator is to do so.
extern "C" fn delete(block: usize, _: usize, operator: &Operator, slot: *const usize) -> *mut c_void {
    if !is_replaced(next(operator, slot)) {
        return std::ptr::null_mut();
    }
    // SAFETY: the program has the block from an operator that allocates as `malloc` does.
    unsafe { free(block as *mut c_void) };
    std::ptr::dangling_mut()
}

/// True if this library allocates and frees in the place of an operator.
fn is_replaced(next: Next) -> bool {
    next.is_plain || next.is_of_allocator
}

extern "C" fn address_of_next(operator: &Operator, slot: *const usize) -> usize {
    next(operator, slot).address
}

/// The next operator, for the call whose return address is at `slot`.
fn next(operator: &Operator, slot: *const usize) -> Next {
    operator.known().unwrap_or_else(|| find(operator, slot))
}

#[cold]
fn find(operator: &Operator, slot: *const usize) -> Next {
    // SAFETY: the call has not returned yet.
    let caller = unsafe { *slot };
    // The loader has a lock.
    uninterrupted(|| operator.find(caller)).unwrap_or_else(|| {
        report::fatal(&format!("no C++ library has {}", operator.name().to_string_lossy()))
    })
}
