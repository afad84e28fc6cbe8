//! The library that makes a process a node: loaded ahead of the C library into an unmodified program, it stands
//! in front of what programs use to share memory, synchronise, start threads and end.

mod alloc;
mod api;
mod constructors;
mod errno;
mod exit;
mod handler_stack;
mod io;
mod library;
mod map;
mod next_function;
mod openmp;
mod operators;
mod plt_stubs;
mod private;
mod pthread;
mod report;
mod signals;
mod span_stack;
mod stack;
mod start;

#[global_allocator]
static ALLOCATOR: private::Private = private::Private;
