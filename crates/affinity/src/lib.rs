//! `libgondwana_affinity.so`: the part of `gondwana exec` inside the program. It binds each thread, and places
//! allocations.
//!
//! The command preloads it and passes the bindings and the rules in the environment. The command has tried all of
//! them and reported what the kernel refuses; this library reports only later problems.

mod arena;
mod fork;
mod inside;
mod malloc;
mod message;
mod next;
mod operators;
mod report;
mod reservation;
mod rules;
mod site;
mod threads;

use gondwana_interpose::{CLibraryHeap, Unguarded};
use libc::{c_char, c_int};

/// The library's own allocations use the C library.
#[global_allocator]
static OWN_MEMORY: CLibraryHeap<Unguarded> = CLibraryHeap::new();

#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISER: extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = begin;

extern "C" fn begin(_argc: c_int, _argv: *mut *mut c_char, _environment: *mut *mut c_char) {
    threads::bind_main();
    rules::lock_all();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static FINISHER: extern "C" fn() = report::at_the_end;
