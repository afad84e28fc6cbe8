//! The entry points of clang's and Intel's compilers, on the same runtime.
//!
//! Their code passes a description of its place and the number of the thread in the whole process to each function; neither matters
//! here. What a region shares it passes as arguments to its function, one by one.

mod copyprivate;
mod dispatch;
mod distributed;
mod doacross;
mod extensions;
pub(super) mod fork;
mod locks;
mod loops;
mod refused;
mod sync;
mod task_block;
mod task_reductions;
mod tasks;
mod teams;
mod threadprivate;

pub(super) use tasks::{discard as discard_task, run as run_task};
pub(super) use threadprivate::end as end_threadprivate;

use libc::c_void;

/// Where the program is, as the compiler describes it; nothing here reads it.
type Place = *const c_void;
