//! Descriptors: every number means the same on all nodes, or nothing.
//!
//! The nodes of a run divide the numbers, so that two never open different files at the same one. At the numbers of
//! others a node has *stops*; a call that meets one is about something that another node has open.

mod calls;
mod division;
mod limit;
mod sets;
mod stops;

pub use stops::{begin, reserve};

use gondwana_node::{Node, Thread};
use libc::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use stops::Numbers;

/// True if a call may go on with this descriptor. Otherwise `errno` says that it is not open.
#[inline]
pub fn is_here(number: c_int, call: &str) -> bool {
    !stops::is_stop(number) || is_reachable(number, call)
}

#[cold]
fn is_reachable(number: c_int, call: &str) -> bool {
    if let Some((node, owner)) = opener_of(number) {
        refuse(node, owner, number, call);
    }
    crate::errno::set(libc::EBADF);
    false
}

/// True if nothing is open on any node at a number where this one has a stop.
fn is_free(number: c_int, call: &str) -> bool {
    opener_of(number).is_none() || is_reachable(number, call)
}

/// The other node that has a descriptor open.
fn opener_of(number: c_int) -> Option<(&'static Node, usize)> {
    let node = Node::current()?;
    let owner = Numbers::get()?.division.owner(number)?;
    // Inside the runtime, a thread cannot ask.
    let open = Thread::inside_runtime() || node.borrow_descriptor(owner, number).is_ok();
    open.then_some((node, owner))
}

/// Says once that descriptors stay on their nodes.
fn refuse(node: &Node, owner: usize, number: c_int, call: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        node.refuse(&format!(
            "{call}() on descriptor {number}, which only node {owner} has open: open it in the thread that uses it, \
             or run with --threads fill or -n 1"
        ));
    }
}

fn is_open(number: c_int) -> bool {
    // SAFETY: touches no memory.
    let flags = unsafe { crate::real!(fcntl: fn(c_int, c_int, usize) -> c_int)(number, libc::F_GETFD, 0) };
    flags >= 0 && !stops::is_stop(number)
}

/// For another node: the number of this process, or `-EBADF` if it does not have the descriptor open either.
pub fn lend(_to: usize, number: c_int) -> c_int {
    // SAFETY: touches no memory.
    if is_open(number) { unsafe { libc::getpid() } } else { -libc::EBADF }
}
