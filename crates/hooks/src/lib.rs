//! `libgondwana_hooks.so`: what a program that `gondwana cc` has built is linked with instead of the thread sanitizer's
//! runtime. Each load, store and atomic operation of the program calls one of the functions here.
//!
//! All target threads are fibers of one host thread, the process's first. The processor with the least simulated time
//! runs, until it is ahead of the next one by the machine's quantum, misses, or waits. Nothing here depends on the host's
//! time, so a run has the same result each time.
//!
//! - `accesses`, `atomics`, `bytes`: loads and stores; the fast path is `gondwana_sim::Port`.
//! - `world`, `fiber`, `threads`: the simulated machine and who runs on it.
//! - `sync`: mutexes and the like, whose state is kept here; each call is also an access to the object's memory.
//! - `processors`: what the program asks about processors, and which of them threads may run on.
//! - `openmp`, `c11`: the functions of libgomp, and of `threads.h`.
//! - `plan`: where a plan wants memory and threads.
//! - `recorder`: the recording, if one is wanted.
//! - `heap`, `operators`, `clock`, `start`: memory at fixed addresses, simulated time, the program's start and end.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "addresses, sizes and the C library's integers have the widths of x86-64 here"
)]

mod accesses;
mod atomics;
mod bytes;
mod c11;
mod clock;
mod fiber;
mod heap;
mod openmp;
mod operators;
mod plan;
mod processors;
mod recorder;
mod settings;
mod start;
mod sync;
mod threads;
mod world;

use gondwana_interpose::{CLibraryHeap, Unguarded};

/// The library's own allocations are the C library's: the program's heap has only what the program asks for.
#[global_allocator]
static HEAP: CLibraryHeap<Unguarded> = CLibraryHeap::new();

/// The C library's function that is behind one of this library.
macro_rules! next {
    ($name:ident: $type:ty) => {{
        static NEXT: gondwana_interpose::NextFunction =
            gondwana_interpose::NextFunction::new(gondwana_interpose::c_name!($name));
        let address = NEXT.known().or_else(|| NEXT.find());
        let address = address.unwrap_or_else(|| {
            crate::start::die(concat!("the C library has no function ", stringify!($name)))
        });
        // SAFETY: the function has this type in the C library.
        unsafe { std::mem::transmute::<usize, $type>(address) }
    }};
}
pub(crate) use next;
