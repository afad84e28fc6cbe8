//! Descriptors: each number refers to the same file on all nodes, or to none.
//!
//! The nodes of a run divide the numbers, so that two never open different files at the same one. At the numbers of
//! other nodes a node has *placeholders* (`stops`). A call on a placeholder refers to a descriptor of another node:
//! on one computer the node then gets a copy of it; otherwise the call fails.

mod bits;
mod borrow;
mod calls;
mod copy;
mod division;
mod limit;
mod ranges;
mod sets;
mod standard;
mod stops;

pub(crate) use borrow::{close_here, forget, lend, recall};
pub(crate) use copy::fetch;
pub(crate) use limit::{believed, for_child, for_exec, restore};
pub(crate) use ranges::{borrow_all, next_open};
pub(crate) use standard::{follow, notice};
pub(crate) use stops::reserve;

use borrow::Borrowed;
use gondwana_node::{Node, Thread};
use libc::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use stops::{Numbers, other_owner};

/// Frees the node's own numbers for the program.
pub(crate) fn begin() {
    let Some(numbers) = Numbers::get() else { return };
    stops::begin(numbers);
    limit::settle(numbers.division.room());
    borrow::begin();
}

/// True if a call may use this descriptor. Otherwise `errno` is set to EBADF.
#[inline]
pub(crate) fn is_here(number: c_int, call: &str) -> bool {
    !stops::is_stop(number) || is_reachable(number, call)
}

#[cold]
fn is_reachable(number: c_int, call: &str) -> bool {
    if let Some((node, owner)) = other_owner(number) {
        let before = crate::errno::get();
        // Inside the runtime, a thread cannot send a request.
        let found =
            if Thread::inside_runtime() { Borrowed::OutOfReach } else { borrow::borrow(node, owner, number) };
        match found {
            Borrowed::Here => {
                crate::errno::set(before);
                return true;
            }
            Borrowed::Closed => {}
            Borrowed::OutOfReach => refuse(node, owner, number, call),
        }
    }
    crate::errno::set(libc::EBADF);
    false
}

/// True if the program may open a number of its choice: another node has nothing open there.
fn is_free(number: c_int, call: &str) -> bool {
    if stops::is_out_of_reach(number) {
        crate::errno::set(libc::EBADF);
        return false;
    }
    match other_owner(number) {
        Some((node, owner)) if node.borrow_descriptor(owner, number).is_ok() => {
            refuse(node, owner, number, call);
            crate::errno::set(libc::EBADF);
            false
        }
        _ => true,
    }
}

/// Prints once that descriptors stay on their nodes.
fn refuse(node: &Node, owner: usize, number: c_int, call: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        node.refuse(&format!(
            "{call}() on descriptor {number}, which only node {owner} has open: open it in the thread that uses it, \
             or run with --threads fill or -n 1"
        ));
    }
}
