//! `libgondwana_affinity.so`: what `gondwana exec` cannot do from outside of a program. It binds each of its threads, and
//! places what it allocates.
//!
//! The launcher loads it in front of the C library and passes the bindings and the rules in the environment. It has
//! tried all of them and told the user what the kernel refuses: here only what becomes of them later is said.

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

/// What this library allocates itself goes to the C library.
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
