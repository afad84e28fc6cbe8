//! Closes ranges of descriptors: those of the program on all nodes, and none of the runtime's.

use super::borrow;
use super::stops::{self, Numbers, other_owner};
use gondwana_node::{Node, ProcessChange};
use libc::{c_int, c_uint};

/// Calls `act` for the numbers of a range that are open here, and `elsewhere` with a node and the numbers that are
/// open only there.
fn for_open(range: (c_uint, c_uint), act: impl Fn(c_int), elsewhere: impl Fn(&'static Node, usize, c_int)) {
    let Some(numbers) = Numbers::get() else { return };
    let before = crate::errno::get();
    let end = range.1.min(numbers.division.room().cast_unsigned() - 1);
    for number in range.0..=end {
        let number = number.cast_signed();
        if stops::is_of_runtime(number) {
            continue;
        }
        if stops::is_open(number) {
            act(number);
        } else if let Some((node, owner)) = other_owner(number)
            && (!node.is_first() || node.has_remote_threads())
            && node.borrow_descriptor(owner, number).is_ok()
        {
            elsewhere(node, owner, number);
        }
    }
    crate::errno::set(before);
}

fn close_all(range: (c_uint, c_uint)) {
    for_open(
        range,
        |number| {
            // SAFETY: what the program asked for.
            unsafe { super::calls::close(number) };
        },
        |node, owner, number| {
            let _ = node.change_on_node(owner, ProcessChange::CloseDescriptor { descriptor: number });
            borrow::forget(number);
            let _ = node.change_elsewhere(ProcessChange::ForgetDescriptor { descriptor: number });
        },
    );
}

/// # Safety
/// As the C library's `close_range`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let known = libc::CLOSE_RANGE_CLOEXEC | libc::CLOSE_RANGE_UNSHARE;
    if Node::current().is_none()
        || Numbers::get().is_none()
        || first > last
        || flags.cast_unsigned() & !known != 0
    {
        // SAFETY: forwards the caller's arguments.
        return unsafe { crate::real!(close_range: fn(c_uint, c_uint, c_int) -> c_int)(first, last, flags) };
    }
    if flags.cast_unsigned() & libc::CLOSE_RANGE_CLOEXEC == 0 {
        close_all((first, last));
    } else {
        // Started programs inherit the descriptors of the node that starts them.
        let mark = |number| {
            // SAFETY: touches no memory.
            unsafe {
                crate::real!(fcntl: fn(c_int, c_int, usize) -> c_int)(
                    number,
                    libc::F_SETFD,
                    libc::FD_CLOEXEC as usize,
                )
            };
        };
        for_open((first, last), mark, |_, _, _| {});
    }
    0
}

/// # Safety
/// As the C library's `closefrom`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn closefrom(first: c_int) {
    if Node::current().is_none() || Numbers::get().is_none() {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(closefrom: fn(c_int))(first) };
    }
    close_all((first.max(0).cast_unsigned(), c_uint::MAX));
}
