//! Common code of the libraries that interpose the C library's functions: `libgondwana.so`,
//! `libgondwana_affinity.so` and `libgondwana_hooks.so`.
//!
//! - [`NextFunction`] looks up the function that would be called without the library.
//! - [`allocator!`] and [`operators!`] define `malloc`, C++'s `operator new` and their relatives: stubs in assembly that tell
//!   the library where the return address of the program's call is.
//! - [`CLibraryHeap`] is the allocator of the library itself, which must not come back to its own `malloc`.
//! - [`calls_from`], [`callers`] and [`unwind`] find the calls that a thread is in.
//! - [`kind_bits`] reads the kind of a mutex where the C library has it.
//! - [`errno`] and [`message`] are the C library's error number and lines on standard error.
//!
//! What a library has to do around a look-up, or around a call of the C library's allocator, differs: each library wraps
//! these calls itself, or names a [`CallGuard`].

mod allocator;
pub mod callers;
mod calls;
pub mod errno;
mod heap;
pub mod message;
mod mutex_kind;
mod next_function;
mod operators;
pub mod unwind;

pub use allocator::MALLOC_ALIGNMENT;
pub use calls::{Call, DEPTH, calls_from};
pub use heap::{CLibraryHeap, CallGuard, Unguarded};
pub use mutex_kind::{KINDS, kind_bits};
pub use next_function::NextFunction;
pub use operators::{Next, Operator};
