//! The program's own protection of shared memory, on all nodes.

use super::forbidden::{Forbidden, ForbiddenRanges};
use crate::private_stack::uninterrupted;
use gondwana_elf::loaded::{LoadedObject, visit};
use gondwana_locks::lock;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Node, ProcessChange};
use libc::{c_int, c_void, size_t};
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The restrictions of shared memory.
static FORBIDDEN: Mutex<ForbiddenRanges> = Mutex::new(ForbiddenRanges::new());

fn with_forbidden<R>(call: impl FnOnce(&mut ForbiddenRanges) -> R) -> R {
    uninterrupted(|| call(&mut lock(&FORBIDDEN)))
}

/// The restrictions inside a range.
pub(super) fn restricted(range: &Range<usize>) -> Vec<Forbidden> {
    with_forbidden(|parts| parts.within(range))
}

/// True for an address of a mapping that lies beyond the mapped file.
pub(crate) fn is_beyond_file(address: usize) -> bool {
    restricted(&(address..address + 1)).iter().any(|part| part.beyond_file)
}

/// Sets the restrictions of a new mapping; 0 or an error number.
pub(super) fn restrict(node: &'static Node, pages: Range<usize>, protection: c_int) -> c_int {
    if is_default(protection) {
        return 0;
    }
    protect(node, Forbidden { start: pages.start, end: pages.end, protection, beyond_file: false })
}

/// The kernel's protection of memory that is not shared.
pub(super) fn real_protect(address: usize, length: size_t, protection: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        crate::real!(mprotect: fn(*mut c_void, size_t, c_int) -> c_int)(
            address as *mut c_void,
            length,
            protection,
        )
    }
}

/// Says, once, that other nodes will not see what the program changes, if its own code or that of a library is at this address.
pub(super) fn says_where_code_changes(address: usize) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let Some(node) = Node::current().filter(|_| !TOLD.load(Ordering::Relaxed)) else { return };
    let is_code = |object: &LoadedObject<'_>| match object.text().contains(&address) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    if visit(is_code).is_some() && !TOLD.swap(true, Ordering::Relaxed) {
        node.refuse(
            "mprotect() makes code of the program writable: other nodes go on with that code as it is in the file; a program that changes \
             its own code is right on one node only (-n 1)",
        );
    }
}

/// Protects shared memory in this process; 0 or an error number.
pub(crate) fn protect_here(address: usize, length: size_t, protection: c_int, beyond_file: bool) -> c_int {
    let pages = address..address + length.next_multiple_of(PAGE_SIZE);
    // The kernel refuses unaligned addresses.
    let node = Node::current().filter(|_| address.is_multiple_of(PAGE_SIZE));
    let done = node.map_or(Ok(false), |node| node.protect_pages(pages.clone(), protection));
    match done {
        Ok(true) => {}
        Ok(false) if real_protect(address, length, protection) == 0 => {}
        Ok(false) => return crate::errno::get(),
        Err(error) => return error,
    }
    with_forbidden(|parts| {
        if is_default(protection) {
            parts.allow(&pages);
        } else {
            parts.forbid(Forbidden { start: pages.start, end: pages.end, protection, beyond_file });
        }
    });
    0
}

/// Forbids this process's threads all access to a part of shared memory.
pub(crate) fn forbid_here(address: usize, length: size_t) {
    protect_here(address, length, libc::PROT_NONE, false);
}

/// Undoes [`forbid_here`].
pub(crate) fn allow_here(address: usize, length: size_t) {
    protect_here(address, length, ALL, false);
}

/// The default protection of memory.
const ALL: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// True for the protection that memory has by default, or one that the processor takes for it.
fn is_default(protection: c_int) -> bool {
    protection & libc::PROT_WRITE != 0 && protection & libc::PROT_EXEC == 0
}

/// Says, once, that nobody has looked for atomic instructions in the code that the program makes.
fn says_that_code_is_not_searched(node: &Node) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        node.refuse(
            "the program makes code while it runs, which is not searched for atomic instructions; if threads synchronise by some there, say \
             --consistency sc, otherwise rc",
        );
    }
}

/// Protects shared memory on all nodes; 0 or an error number.
pub(super) fn protect(node: &'static Node, part: Forbidden) -> c_int {
    let Forbidden { start, end, protection, beyond_file } = part;
    let (address, length) = (start as u64, (end - start) as u64);
    if protection & libc::PROT_EXEC != 0 && node.relies_on_search() {
        says_that_code_is_not_searched(node);
    }
    match protect_here(start, end - start, protection, beyond_file) {
        0 => node
            .change_elsewhere(ProcessChange::Protect { address, length, protection, beyond_file })
            .err()
            .unwrap_or(0),
        error => error,
    }
}

/// Memory that is given back, or up, may be used for anything; 0 or an error number.
pub(crate) fn allow_again(node: &'static Node, pages: &Range<usize>) -> c_int {
    if restricted(pages).is_empty() {
        return 0;
    }
    protect(node, Forbidden { start: pages.start, end: pages.end, protection: ALL, beyond_file: false })
}

/// The result of a system call for an error number or 0.
pub(super) fn result(error: c_int) -> c_int {
    if error == 0 {
        return 0;
    }
    crate::errno::set(error);
    -1
}
