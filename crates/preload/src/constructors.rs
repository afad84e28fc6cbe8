//! The constructors of the libraries that the program uses.
//!
//! The loader runs them in every process before the program's entry code, when the process is not yet a node: their
//! allocations would be private, and each node would print their output. So this library's initialiser, which the
//! loader runs before all others (see `build.rs`), removes them from the loader's lists; node 0 runs them once it is
//! a node. Constructors of the language runtimes stay, because their data is private to each node.

use crate::executable_allocator;
use gondwana_control::BOOT_VARIABLE;
use gondwana_elf::loaded::{self, Constructor, LoadedObject, tag};
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::sync::OnceLock;

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
    // SAFETY: no other thread runs, and nothing is unloaded during the start. The loader has relocated all objects, and calls
    // this function before the initialisers of all others.
    let taken = unsafe {
        let objects = loaded::select(|_| true);
        objects.first().into_iter().for_each(|executable| executable_allocator::replace(executable));
        let array = |object: &LoadedObject<'_>, array, bytes| object.take_initialisers(array, bytes, nothing);
        let mut taken = objects
            .first()
            .map_or(vec![], |executable| array(executable, tag::PREINIT_ARRAY, tag::PREINIT_ARRAYSZ));
        for object in in_order(&objects).into_iter().filter(|object| object.is_library_of_program()) {
            taken.extend(object.take_initialiser(nothing));
            taken.extend(array(object, tag::INIT_ARRAY, tag::INIT_ARRAYSZ));
        }
        taken
    };
    TAKEN.get_or_init(|| taken);
}

/// The objects in the loader's order: each after its dependencies; otherwise in reverse load order.
pub(crate) fn in_order<'a>(objects: &'a [LoadedObject<'static>]) -> Vec<&'a LoadedObject<'static>> {
    fn visit<'a>(
        index: usize,
        objects: &'a [LoadedObject<'static>],
        seen: &mut [bool],
        order: &mut Vec<&'a LoadedObject<'static>>,
    ) {
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

/// Runs the removed constructors; on node 0 only.
pub(crate) fn run(argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) {
    for constructor in TAKEN.get().into_iter().flatten() {
        constructor(argc, argv, environment);
    }
}
