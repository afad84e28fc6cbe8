//! The constructors of the libraries that the program uses.
//!
//! The loader runs them in every process before the program's entry code, when the process is not yet a node: what
//! they allocate would be each node's own, and what they print would be printed by each. So this library's
//! initialiser, which the loader runs before all others (see `build.rs`), takes them out of the loader's hands; node
//! 0 runs them when it is a node. Those of the language runtimes stay, because their data is private to each node.

use crate::object::{self, Object, tag};
use gondwana_control::BOOT_VARIABLE;
use gondwana_memory::PAGE_SIZE;
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::ops::Range;
use std::sync::OnceLock;

type Constructor = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char);

/// The constructors, in the order in which the loader would have run them.
static TAKEN: OnceLock<Vec<Constructor>> = OnceLock::new();

#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISER: Constructor = take_over;

extern "C" fn nothing(_argc: c_int, _argv: *mut *mut c_char, _environment: *mut *mut c_char) {}

extern "C" fn take_over(_argc: c_int, _argv: *mut *mut c_char, environment: *mut *mut c_char) {
    // The C library's own initialiser has not run yet, so that its `getenv` finds nothing.
    // SAFETY: the loader passes the null-terminated environment.
    let is_node = unsafe {
        (0..).map(|index| *environment.add(index)).take_while(|text| !text.is_null()).any(|text| {
            let text = CStr::from_ptr(text).to_bytes();
            text.strip_prefix(BOOT_VARIABLE.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        })
    };
    if !is_node {
        return;
    }
    let objects = object::loaded();
    let mut taken = objects
        .first()
        .map_or(vec![], |executable| take_array(executable, tag::PREINIT_ARRAY, tag::PREINIT_ARRAYSZ));
    for object in in_order(&objects).into_iter().filter(|object| object.is_library_of_program()) {
        taken.extend(take_function(object));
        taken.extend(take_array(object, tag::INIT_ARRAY, tag::INIT_ARRAYSZ));
    }
    TAKEN.get_or_init(|| taken);
}

/// The objects in the loader's order: each after those that it needs; otherwise the last one found comes first.
fn in_order(objects: &[Object]) -> Vec<&Object> {
    fn visit<'a>(index: usize, objects: &'a [Object], seen: &mut [bool], order: &mut Vec<&'a Object>) {
        if std::mem::replace(&mut seen[index], true) {
            return;
        }
        for name in objects[index].texts(tag::NEEDED) {
            if let Some(needed) = objects.iter().position(|object| object.is_called(name)) {
                visit(needed, objects, seen, order);
            }
        }
        order.push(&objects[index]);
    }
    let mut seen = vec![false; objects.len()];
    let mut order = vec![];
    (0..objects.len()).rev().for_each(|index| visit(index, objects, &mut seen, &mut order));
    order
}

/// Puts a function that does nothing in place of an object's initialiser.
fn take_function(object: &Object) -> Option<Constructor> {
    // SAFETY: the entries are there.
    let entry = object.dynamic().find(|&entry| unsafe { (*entry).tag } == tag::INIT)?;
    // SAFETY: as above; the entry holds the distance of a function with this signature from the object's base.
    unsafe {
        let address = object.base.wrapping_add((*entry).value as usize);
        let value = (nothing as *const () as usize).wrapping_sub(object.base);
        overwrite(object, &raw mut (*entry).value, value as u64);
        Some(std::mem::transmute::<usize, Constructor>(address))
    }
}

/// Puts functions that do nothing in place of those in one of an object's arrays.
fn take_array(object: &Object, array: i64, bytes: i64) -> Vec<Constructor> {
    let (Some(array), Some(bytes)) = (object.value(array), object.value(bytes)) else { return vec![] };
    let array = object.base.wrapping_add(array) as *mut u64;
    let mut taken = vec![];
    for index in 0..bytes / size_of::<u64>() {
        // SAFETY: the loader has relocated the array, which holds functions with this signature.
        unsafe {
            let entry = array.add(index);
            let address = entry.read() as usize;
            // The loader calls the others; 0 and -1 are no functions, but old tools put them there.
            if address != 0 && address != usize::MAX {
                taken.push(std::mem::transmute::<usize, Constructor>(address));
                overwrite(object, entry, nothing as *const () as usize as u64);
            }
        }
    }
    taken
}

/// Writes to a place that the loader may have made read-only.
///
/// # Safety
/// The place is in a writable segment of the object.
unsafe fn overwrite(object: &Object, place: *mut u64, value: u64) {
    let page = place as usize & !(PAGE_SIZE - 1);
    let protect = |protection: c_int| {
        // By system call: our own `mprotect` and the C library may not be called yet.
        // SAFETY: changes the page of a segment that was writable when the object was loaded.
        unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, page as *mut c_void, PAGE_SIZE, protection) };
    };
    let read_only = object.segment(libc::PT_GNU_RELRO).map_or(0..0, |header| {
        let Range { start, end } = object.range(header);
        start & !(PAGE_SIZE - 1)..end & !(PAGE_SIZE - 1)
    });
    if !read_only.contains(&page) {
        // SAFETY: the caller's promise.
        return unsafe { place.write(value) };
    }
    protect(libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: as above.
    unsafe { place.write(value) };
    protect(libc::PROT_READ);
}

/// Runs what was taken over; on node 0 only.
pub fn run(argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) {
    for constructor in TAKEN.get().into_iter().flatten() {
        constructor(argc, argv, environment);
    }
}
