//! Where a call on a descriptor is made.

use super::borrow::{self, Borrowed};
use super::refuse;
use super::reopened;
use super::standard;
use super::stops::{self, other_owner};
use super::there::There;
use gondwana_node::{Node, Thread};
use libc::c_int;

/// Where a call is made.
pub(crate) enum Place {
    /// By this process: it has the descriptors, or copies of them.
    Here,
    /// By the node that has them.
    There(There),
    /// Nowhere. `errno` is set.
    Nowhere,
}

/// Where to make a call on these descriptors. Negative ones stand for something that every node has.
#[inline]
pub(crate) fn place(numbers: &[c_int], call: &str) -> Place {
    if numbers.iter().any(|&number| stops::is_stop(number)) {
        find(numbers, call)
    } else if matches!(*numbers, [number] if standard::is_output_of_first(number)) {
        place_of_output(call)
    } else {
        Place::Here
    }
}

/// Where to make a call on standard output or error that is node 0's: all but writing makes no difference there.
#[cold]
fn place_of_output(call: &str) -> Place {
    let asks = |node: &&Node| node.has_company() && !Thread::inside_runtime();
    match Node::current().filter(asks) {
        Some(node) if matches!(call, "write" | "writev") => Place::There(There { node, owner: 0 }),
        _ => Place::Here,
    }
}

#[cold]
fn find(numbers: &[c_int], call: &str) -> Place {
    let before = crate::errno::get();
    let mut found: Option<There> = None;
    let mut here = false;
    for &number in numbers.iter().filter(|&&number| number >= 0) {
        match find_one(number) {
            Place::Here => here = true,
            Place::There(there) if found.is_none_or(|other| other.owner == there.owner) => {
                found = Some(there)
            }
            Place::There(there) => return apart(there, number, call),
            Place::Nowhere => {
                reopened::miss(number, call);
                crate::errno::set(libc::EBADF);
                return Place::Nowhere;
            }
        }
    }
    crate::errno::set(before);
    match found {
        None => Place::Here,
        Some(there) if here => apart(there, numbers[0], call),
        Some(there) => Place::There(there),
    }
}

fn find_one(number: c_int) -> Place {
    if !stops::is_stop(number) {
        return Place::Here;
    }
    // Inside the runtime, a thread cannot send a request.
    let Some((node, owner)) = other_owner(number).filter(|_| !Thread::inside_runtime()) else {
        return Place::Nowhere;
    };
    match borrow::borrow(node, owner, number) {
        Borrowed::Here => Place::Here,
        Borrowed::OutOfReach => Place::There(There { node, owner }),
        Borrowed::Closed => Place::Nowhere,
    }
}

/// The descriptors of one call are of several nodes.
fn apart(there: There, number: c_int, call: &str) -> Place {
    // Calls that only save copying fail as for files that they do not support, for which programs are prepared.
    let error = match call {
        "splice" | "tee" | "sendfile" | "sendfile64" => libc::EINVAL,
        "copy_file_range" | "linkat" | "renameat" | "renameat2" => libc::EXDEV,
        _ => {
            refuse(there.node, there.owner, number, call);
            libc::EBADF
        }
    };
    crate::errno::set(error);
    Place::Nowhere
}
