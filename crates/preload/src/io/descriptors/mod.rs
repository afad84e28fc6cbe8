//! Descriptors: each number refers to the same file on all nodes, or to none.
//!
//! The nodes of a run divide the numbers, so that two never open different files at the same one. At the numbers of
//! other nodes a node has *placeholders* (`stops`). A call on a placeholder refers to a descriptor of another node:
//! on one computer the node then gets a copy of it; otherwise the other node makes the call (`there`, `for_others`).

mod apart;
mod bits;
mod borrow;
mod calls;
mod copy;
mod division;
mod event;
mod events;
mod extend;
mod for_others;
mod limit;
mod listed;
mod place;
mod ranges;
mod reopened;
mod sets;
mod standard;
mod status;
mod stops;
mod there;
mod watch;

pub(crate) use borrow::{close_here, close_with_copies, forget, lend, recall};
pub(crate) use calls::close;
pub(crate) use calls::fsync;
pub(crate) use copy::{described, fetch};
pub(crate) use extend::{copying, extend_after_failure, give_here, opened};
pub(crate) use for_others::{call_at_once, call_here};
pub(crate) use limit::{believed, for_child, for_exec, withdraw};
pub(crate) use listed::{hides, note_directory};
pub(crate) use place::{Place, place};
pub(crate) use ranges::next_open;
pub(crate) use reopened::{Reopened, can_open_again};
pub(crate) use sets::of_time;
pub(crate) use standard::{follow, is_output_of_first, leave_output_to_first, notice};
pub(crate) use status::{forget_kind, is_channel, is_channel_of_stream, is_file, status};
pub(crate) use stops::{close_withdrawn, reserve};
pub(crate) use there::{MOST as MOST_THERE, There};

use gondwana_node::Node;
use libc::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use stops::{Numbers, other_owner};

/// Frees the node's own numbers for the program.
pub(crate) fn begin() {
    let Some(numbers) = Numbers::get() else { return };
    stops::begin(numbers);
    status::begin();
    limit::settle(numbers.division.room());
    extend::begin(numbers);
    borrow::begin();
}

/// In the child of a `fork`, which is no node: it has the limits that the program knows, and all numbers.
pub(crate) fn restore() {
    limit::restore();
    extend::end();
    stops::end();
}

/// True if this process makes a call on a descriptor: for calls that no other node can make. Otherwise `errno` is set to EBADF.
#[inline]
pub(crate) fn is_here(number: c_int, call: &str) -> bool {
    match place(&[number], call) {
        Place::Here => true,
        Place::There(There { node, owner }) => {
            refuse(node, owner, number, call);
            crate::errno::set(libc::EBADF);
            false
        }
        Place::Nowhere => false,
    }
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
