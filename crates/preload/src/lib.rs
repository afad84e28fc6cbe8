//! The library that makes a process a node: preloaded into an unmodified program, it interposes the functions by
//! which programs allocate and share memory, synchronise, start threads and end.

mod accesses;
mod alloc;
mod api;
mod blocked_signals;
mod constructors;
mod contexts;
mod executable_allocator;
mod exit;
mod generated_frames;
mod handler_frame;
mod handler_stack;
mod io;
mod left_behind;
mod library;
mod locked;
mod main_thread;
mod map;
mod next_function;
mod numbers;
mod old_signals;
mod openmp;
mod operators;
mod plt_stubs;
mod private;
mod private_stack;
mod process;
mod pthread;
mod random;
mod ranges;
mod redirect;
mod registers;
mod report;
mod signal_waits;
mod signals;
mod span_stack;
mod stack;
mod start;
mod synchronising;
mod system_calls;
mod thread_list;
mod thread_memory;
mod traps;
mod variadic_words;

use gondwana_interpose::errno;

#[global_allocator]
static ALLOCATOR: private::Private = private::Private::new();
