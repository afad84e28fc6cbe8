//! The numbers of the process and its threads: the process is that of node 0, and its number is that of the thread that runs `main`,
//! too.
//!
//! On one computer, threads have the kernel's numbers, which differ anyway. Elsewhere the number of a thread of another node
//! than node 0 has that node in its upper bits.

use super::common;
use super::memory::{MAIN, PARENT, PROCESS, word};
use crate::main_thread;
use gondwana_node::Node;
use libc::pid_t;
use std::sync::atomic::{AtomicI32, Ordering};

/// The kernel's numbers are smaller than two to the power of this.
const KERNEL_BITS: u32 = 22;

/// One of the numbers that node 0 has given to all, once it has.
fn common_number(address: usize) -> Option<pid_t> {
    common()?;
    pid_t::try_from(word(address).load(Ordering::Relaxed)).ok().filter(|&number| number != 0)
}

/// The number of the program's process.
pub(crate) fn process() -> pid_t {
    common_number(PROCESS).unwrap_or_else(gondwana_sys::process)
}

/// The number of the calling thread.
pub(crate) fn thread() -> pid_t {
    let thread = gondwana_sys::thread();
    if main_thread::number() == Some(thread) {
        return process();
    }
    match common() {
        Some(node) if !node.is_on_one_computer() => i32::from(node.number().0) << KERNEL_BITS | thread,
        _ => thread,
    }
}

/// By which number the kernel of this node knows a thread that a program names so.
pub(crate) fn kernel_number(number: pid_t) -> pid_t {
    match Node::current().map(|node| place(node, number)) {
        Some(Place::Here(number)) => number,
        _ => number,
    }
}

/// Where a thread or process is, and the kernel's number of it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The kernel of this node knows it by this number.
    Here(pid_t),
    /// The kernel of another node does.
    Elsewhere(usize, pid_t),
}

/// Where the thread or process of a number is. Numbers that are none of the run are the kernel's.
pub(crate) fn place(node: &Node, number: pid_t) -> Place {
    let main = common_number(MAIN).filter(|_| number == process());
    let number = main.unwrap_or(number);
    if node.is_on_one_computer() {
        Place::Here(number)
    } else {
        split(number, node.number().index(), node.nodes())
    }
}

fn split(number: pid_t, me: usize, nodes: usize) -> Place {
    let at = usize::try_from(number >> KERNEL_BITS).unwrap_or(usize::MAX);
    let kernel = number & ((1 << KERNEL_BITS) - 1);
    match at {
        at if at == me => Place::Here(kernel),
        at if at < nodes => Place::Elsewhere(at, kernel),
        _ => Place::Here(number),
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getpid() -> pid_t {
    process()
}

/// In the child of a `fork`: what the parent was for the kernel, and what the program calls it; zeros elsewhere.
static FORKED: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];

/// In the child of a `fork` by any node: the program, whose process has this number, is its parent.
pub(crate) fn become_child(program: pid_t) {
    FORKED[1].store(program, Ordering::Relaxed);
    FORKED[0].store(gondwana_sys::parent(), Ordering::Relaxed);
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getppid() -> pid_t {
    common_number(PARENT).unwrap_or_else(|| {
        let parent = gondwana_sys::parent();
        let [node, program] = FORKED.each_ref().map(|number| number.load(Ordering::Relaxed));
        if parent == node && node != 0 { program } else { parent }
    })
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gettid() -> pid_t {
    thread()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_the_node_of_a_thread() {
        assert_eq!(split(3 << KERNEL_BITS | 77, 3, 4), Place::Here(77));
        assert_eq!(split(3 << KERNEL_BITS | 77, 0, 4), Place::Elsewhere(3, 77));
        assert_eq!(split(77, 0, 4), Place::Here(77));
        assert_eq!(split(77, 3, 4), Place::Elsewhere(0, 77));
        assert_eq!(
            [split(-1, 0, 4), split(9 << KERNEL_BITS, 0, 4)],
            [Place::Here(-1), Place::Here(9 << KERNEL_BITS)]
        );
    }
}
