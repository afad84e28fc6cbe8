//! Standard input, output and error: all nodes follow when one node opens or closes their numbers.
//!
//! The C library uses these itself, by `printf` on any node, so a change cannot wait until a call of the program
//! notices it.

use super::copy::{Lasting, copy};
use super::status;
use super::stops::{self, Numbers};
use crate::numbers::many;
use gondwana_node::{Node, ProcessChange, StandardStream, Thread};
use libc::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const COUNT: c_int = 3;

/// The numbers, as bits, that were closed on this node: natively, whatever is opened next gets the lowest.
static HOLES: AtomicU32 = AtomicU32::new(0);

/// True for the number of a standard stream.
#[inline]
pub(super) fn is_standard(number: c_int) -> bool {
    (0..COUNT).contains(&number)
}

/// What this node prints, node 0 prints.
static OUTPUT_OF_FIRST: AtomicBool = AtomicBool::new(false);

/// On a node other than node 0, at the start: what is written to standard output and error is node 0's to write.
pub(crate) fn leave_output_to_first() {
    OUTPUT_OF_FIRST.store(true, Ordering::Relaxed);
}

/// True if that holds for a number: it is that of standard output or error, and the program has put nothing else in its place here.
#[inline]
pub(crate) fn is_output_of_first(number: c_int) -> bool {
    OUTPUT_OF_FIRST.load(Ordering::Relaxed)
        && [libc::STDOUT_FILENO, libc::STDERR_FILENO].contains(&number)
        && super::status::is_as_at_start(number)
}

/// Called after a call that may have opened a descriptor: notifies the other nodes if it has a standard number.
#[inline]
pub(crate) fn notice() {
    if HOLES.load(Ordering::Relaxed) != 0 {
        look_into_holes();
    }
}

#[cold]
fn look_into_holes() {
    // The runtime's own calls reach this function too.
    if Thread::inside_runtime() {
        return;
    }
    let before = crate::errno::get();
    let holes = HOLES.load(Ordering::Relaxed);
    (0..COUNT).filter(|&number| holes & bit(number) != 0 && stops::is_open(number)).for_each(changed);
    crate::errno::set(before);
}

fn bit(number: c_int) -> u32 {
    1 << number
}

/// A standard number was opened, replaced or closed on this node: all other nodes follow before the caller continues.
pub(super) fn changed(number: c_int) {
    let (Some(node), Some(_)) = (Node::current(), Numbers::get()) else { return };
    let before = crate::errno::get();
    let stream = if !stops::is_open(number) {
        HOLES.fetch_or(bit(number), Ordering::Relaxed);
        StandardStream::Closed
    } else {
        HOLES.fetch_and(!bit(number), Ordering::Relaxed);
        match is_null_device(number) {
            true => StandardStream::Null,
            false => StandardStream::Of(gondwana_sys::process()),
        }
    };
    let reachable = !matches!(stream, StandardStream::Of(_)) || node.is_on_one_computer();
    let change = ProcessChange::Standard { descriptor: number, stream };
    if !reachable || node.change_elsewhere(change).is_err() {
        refuse(node, number);
    }
    crate::errno::set(before);
}

/// True if a descriptor is `/dev/null`, which every computer has.
fn is_null_device(number: c_int) -> bool {
    status(number).is_some_and(|found| {
        found.st_mode & libc::S_IFMT == libc::S_IFCHR && found.st_rdev == libc::makedev(1, 3)
    })
}

/// Prints once that the stream has changed on this node only.
fn refuse(node: &Node, number: c_int) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let stream = ["input", "output", "error"][many(number)];
        node.refuse(&format!(
            "standard {stream} is redirected for the threads of this node only: redirect it in the command line, or \
             run with --threads fill or -n 1"
        ));
    }
}

/// For another node, which has changed a standard stream; 0 or an error number.
pub(crate) fn follow(number: c_int, stream: StandardStream) -> c_int {
    // Whatever is opened next on this node must not get the number.
    HOLES.fetch_and(!bit(number), Ordering::Relaxed);
    let followed = match stream {
        StandardStream::Closed => {
            if let Some(numbers) = Numbers::get() {
                numbers.close(number);
            }
            return 0;
        }
        StandardStream::Null => open_null(number),
        StandardStream::Of(process) => copy(process, number, Lasting::AcrossExec),
    };
    if followed {
        stops::taken(number);
        0
    } else {
        libc::EPERM
    }
}

fn open_null(number: c_int) -> bool {
    // SAFETY: touches no memory but the path; what is opened is closed again.
    unsafe {
        let null = crate::real!(open: fn(*const libc::c_char, c_int) -> c_int)(
            c"/dev/null".as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC,
        );
        let done = crate::real!(dup2: fn(c_int, c_int) -> c_int)(null, number) == number;
        if null != number {
            crate::real!(close: fn(c_int) -> c_int)(null);
        }
        null >= 0 && done
    }
}
