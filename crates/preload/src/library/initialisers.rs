//! The initialisers of libraries that were opened. The thread that opens a library runs them, on its node, once all nodes have the library.

use gondwana_elf::loaded::Constructor;
use gondwana_node::{Caller, Node};
use libc::{c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arguments of the program, in shared memory; 0 on other nodes than node 0, and before `main`.
static ARGUMENTS: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A list of initialisers, in shared memory; their addresses follow.
#[repr(C)]
struct List {
    argc: c_int,
    argv: *mut *mut c_char,
    count: usize,
}

/// Keeps the arguments of the program, which are in shared memory, for initialisers on all nodes.
///
/// # Safety
/// There are so many arguments.
pub(super) unsafe fn keep_arguments(node: &'static Node, argc: usize, argv: *mut *mut c_char) {
    let bytes = (argc + 1) * size_of::<usize>();
    if let Some(copy) = node.allocate_zeroed(bytes, Caller::NONE) {
        // SAFETY: both have room for them.
        unsafe { std::ptr::copy_nonoverlapping(argv, copy as *mut *mut c_char, argc) };
        COUNT.store(argc, Ordering::Relaxed);
        ARGUMENTS.store(copy, Ordering::Relaxed);
    }
}

/// Lists initialisers for [`run`] on any node; on node 0 only. 0 if there are none.
pub(super) fn list(node: &'static Node, initialisers: &[usize]) -> Option<usize> {
    if initialisers.is_empty() {
        return Some(0);
    }
    let address = node.allocate(size_of::<List>() + size_of_val(initialisers), 16, Caller::NONE)?;
    let argc = c_int::try_from(COUNT.load(Ordering::Relaxed)).unwrap_or(0);
    let argv = ARGUMENTS.load(Ordering::Relaxed) as *mut *mut c_char;
    // SAFETY: the block is long enough.
    unsafe {
        (address as *mut List).write(List { argc, argv, count: initialisers.len() });
        let first = (address + size_of::<List>()) as *mut usize;
        std::ptr::copy_nonoverlapping(initialisers.as_ptr(), first, initialisers.len());
    }
    Some(address)
}

/// Runs the initialisers of a list, and frees it.
///
/// # Safety
/// The list is one of [`list`] or 0, and all nodes have the libraries.
pub(super) unsafe fn run(node: &'static Node, address: usize) {
    if address == 0 {
        return;
    }
    // SAFETY: `list` has written it.
    let (&List { argc, argv, count }, first) =
        unsafe { (&*(address as *const List), (address + size_of::<List>()) as *const usize) };
    for index in 0..count {
        // SAFETY: the list has so many, each of which is the address of a function of this type.
        let initialiser: Constructor = unsafe { std::mem::transmute(first.add(index).read()) };
        initialiser(argc, argv, crate::process::environment::present());
    }
    node.free(address);
}
