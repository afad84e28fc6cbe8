//! Frames of code that the program has made: what a thread registers, all nodes know.
//!
//! Generators of code, such as LLVM's, tell the compiler's runtime library where the frames of their functions are described, for exceptions
//! and backtraces. That library is private to each node, and generated code runs on all of them.

use crate::private_stack::uninterrupted;
use gondwana_elf::{DescribedFunction, described_functions};
use gondwana_locks::lock;
use gondwana_node::{Node, ProcessChange};
use gondwana_page::to_usize;
use libc::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

/// A table of frames that the program has registered.
struct Table {
    address: usize,
    functions: Vec<DescribedFunction>,
}

static TABLES: Mutex<Vec<Table>> = Mutex::new(vec![]);

/// Of a table whose entry was found, as the compiler's runtime library has it: what the entry's addresses may be relative to, and where the
/// function begins.
#[repr(C)]
pub(crate) struct Bases {
    text: *mut c_void,
    data: *mut c_void,
    function: *mut c_void,
}

/// Adds a table to those of this node.
pub(crate) fn add_here(address: u64, functions: Vec<DescribedFunction>) {
    uninterrupted(|| lock(&TABLES).push(Table { address: to_usize(address), functions }));
}

/// Removes a table from those of this node. False if it was not there.
pub(crate) fn remove_here(address: u64) -> bool {
    uninterrupted(|| {
        let mut tables = lock(&TABLES);
        let found = tables.iter().rposition(|table| table.address == to_usize(address));
        found.map(|at| tables.swap_remove(at)).is_some()
    })
}

/// Tells the other nodes, unless this is about a library that each node loads for itself.
fn tell(change: ProcessChange) {
    if let Some(node) = Node::current().filter(|_| crate::library::calls_for_program()) {
        // Nodes cannot refuse it.
        let _ = node.change_elsewhere(change);
    }
}

/// The bytes of a table, which ends with a length of 0.
///
/// # Safety
/// The table is complete, and does not change as long as the result is used.
unsafe fn contents<'table>(begin: *const u8) -> &'table [u8] {
    let mut length = 0;
    loop {
        // SAFETY: there is a length behind each entry.
        let entry = unsafe { begin.add(length).cast::<u32>().read_unaligned() };
        length += size_of::<u32>();
        match entry {
            0 => break,
            // Another one, of eight bytes, follows.
            u32::MAX => {
                // SAFETY: as above.
                length += 8 + to_usize(unsafe { begin.add(length).cast::<u64>().read_unaligned() });
            }
            bytes => length += bytes as usize,
        }
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(begin, length) }
}

/// Registers a table of frames: as the compiler's runtime library.
///
/// # Safety
/// As the function of this name there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __register_frame(begin: *const u8) {
    // SAFETY: the caller's promise.
    let functions = described_functions(unsafe { contents(begin) }, begin as u64);
    add_here(begin as u64, functions.clone());
    tell(ProcessChange::Frames {
        table: begin as u64,
        functions: functions.iter().map(|each| [each.code.start, each.code.end, each.entry]).collect(),
    });
}

/// Takes back what [`__register_frame`] did, on whatever node: as the compiler's runtime library.
///
/// # Safety
/// As the function of this name there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __deregister_frame(begin: *const u8) {
    if remove_here(begin as u64) {
        tell(ProcessChange::ForgetFrames { table: begin as u64 });
    } else {
        // SAFETY: forwards the caller's argument.
        unsafe { crate::real!(__deregister_frame: fn(*const u8))(begin) }
    }
}

/// The entry that describes the frame of the function at an address: as the compiler's runtime library, which calls this for each frame.
///
/// # Safety
/// As the function of this name there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Unwind_Find_FDE(address: *mut c_void, bases: *mut Bases) -> *const c_void {
    // SAFETY: forwards the caller's arguments.
    let found = unsafe {
        crate::real!(_Unwind_Find_FDE: fn(*mut c_void, *mut Bases) -> *const c_void)(address, bases)
    };
    if !found.is_null() {
        return found;
    }
    let address = address as u64;
    let function = uninterrupted(|| {
        let tables = lock(&TABLES);
        let mut functions = tables.iter().flat_map(|table| &table.functions);
        functions.find(|function| function.code.contains(&address)).cloned()
    });
    function.map_or(null_mut(), |function| {
        let start = to_usize(function.code.start) as *mut c_void;
        // SAFETY: the caller's promise.
        unsafe { bases.write(Bases { text: null_mut(), data: null_mut(), function: start }) };
        to_usize(function.entry) as *mut c_void
    })
}
