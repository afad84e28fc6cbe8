//! Ranges of descriptors: those of the program on all nodes, and none of the runtime's.

use super::borrow;
use super::stops::{self, Numbers};
use gondwana_node::Node;
use libc::{c_int, c_uint};

/// Calls `act` for the numbers of a range that are open here, and `elsewhere` with a node and the numbers that are
/// open only there.
pub(super) fn for_open(
    range: (c_uint, c_uint),
    act: impl Fn(c_int),
    elsewhere: impl Fn(&'static Node, usize, c_int),
) {
    let Some(numbers) = Numbers::get() else { return };
    let before = crate::errno::get();
    let room = numbers.division.room().cast_unsigned();
    let range = range.0.min(room).cast_signed()..range.1.saturating_add(1).min(room).cast_signed();
    range.clone().filter(|&number| is_programs(number)).for_each(&act);
    if let Some(node) = Node::current().filter(|node| node.has_company()) {
        for owner in (0..node.nodes()).filter(|&owner| owner != node.number().index()) {
            let mut from = range.start;
            while let Some(number) = node.next_descriptor(owner, from).filter(|number| range.contains(number))
            {
                if numbers.is_foreign(number) && !stops::is_of_runtime(number) && !stops::is_open(number) {
                    elsewhere(node, owner, number);
                }
                from = number + 1;
            }
        }
    }
    crate::errno::set(before);
}

/// True if the program has this number open here.
fn is_programs(number: c_int) -> bool {
    !stops::is_of_runtime(number) && stops::is_open(number)
}

/// For another node: the first number of this node, from one on, that the program has open; -1 if there is none.
pub(crate) fn next_open(from: c_int) -> c_int {
    let own = Numbers::get().into_iter().flat_map(|numbers| numbers.division.of(numbers.me));
    own.skip_while(|&number| number < from).find(|&number| is_programs(number)).unwrap_or(-1)
}

fn close_all(range: (c_uint, c_uint)) {
    for_open(
        range,
        |number| {
            // SAFETY: what the program asked for.
            unsafe { super::calls::close(number) };
        },
        |node, owner, number| {
            let _ = borrow::close_there(node, owner, number);
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
