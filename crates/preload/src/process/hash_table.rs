//! The hash table of the program (`hsearch`): one for all nodes, in shared memory.

use super::calls::on_others;
use super::{common, in_order};
use crate::alloc::for_program;
use gondwana_node::Caller;
use libc::{c_char, c_int, c_void, size_t};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What the functions with `_r` use: `struct hsearch_data`, with a pointer to a table from `malloc`.
#[repr(C)]
struct Table {
    entries: *mut c_void,
    size: u32,
    filled: u32,
}

/// An entry, as the caller passes it.
#[repr(C)]
pub(super) struct Entry {
    key: *mut c_char,
    data: *mut c_void,
}

/// On each node the same; null until the program has made a table.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());

fn set_here(table: &mut usize) -> c_int {
    TABLE.store(*table as *mut Table, Ordering::Release);
    0
}

/// The table, which all nodes know from now on.
fn table() -> Option<*mut Table> {
    let known = || Some(TABLE.load(Ordering::Acquire)).filter(|table| !table.is_null());
    known().or_else(|| {
        let node = common()?;
        in_order(node, || {
            known().or_else(|| {
                let mut table =
                    node.allocate(size_of::<Table>(), align_of::<Table>().max(16), Caller::NONE)?;
                // SAFETY: a new block, this long.
                unsafe { (table as *mut Table).write(Table { entries: null_mut(), size: 0, filled: 0 }) };
                set_here(&mut table);
                // It cannot fail.
                let _ = on_others(node, table, set_here);
                Some(table as *mut Table)
            })
        })
    })
}

/// # Safety
/// As the C library's `hcreate`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn hcreate(count: size_t) -> c_int {
    // SAFETY: the table is this one's, and described as the function expects it.
    unsafe {
        match table() {
            Some(table) => {
                for_program(|| crate::real!(hcreate_r: fn(size_t, *mut Table) -> c_int)(count, table))
            }
            None => crate::real!(hcreate: fn(size_t) -> c_int)(count),
        }
    }
}

/// # Safety
/// As the C library's `hdestroy`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn hdestroy() {
    // SAFETY: as above.
    unsafe {
        match table() {
            Some(table) => crate::real!(hdestroy_r: fn(*mut Table))(table),
            None => crate::real!(hdestroy: fn())(),
        }
    }
}

/// # Safety
/// As the C library's `hsearch`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn hsearch(entry: Entry, action: c_int) -> *mut Entry {
    // SAFETY: as above.
    unsafe {
        let Some(table) = table().filter(|&table| !(*table).entries.is_null()) else {
            return match common() {
                // There is no table; the C library's own would do without the question.
                Some(_) => null_mut(),
                None => crate::real!(hsearch: fn(Entry, c_int) -> *mut Entry)(entry, action),
            };
        };
        let mut found = null_mut();
        crate::real!(hsearch_r: fn(Entry, c_int, *mut *mut Entry, *mut Table) -> c_int)(
            entry,
            action,
            &raw mut found,
            table,
        );
        found
    }
}
