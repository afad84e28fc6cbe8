//! OpenMP: the functions that gcc compiles pragmas to, in place of the compiler's own runtime.
//!
//! That one (libgomp) cannot serve several nodes: its threads write to each other's thread-local variables, and it
//! waits by system calls and atomic instructions of its own. This one keeps what threads have in common in shared
//! memory and touches it only under locks of the whole machine, so that it is right under each consistency. A part
//! of libgomp that has no counterpart here and touches no other thread (devices, leagues of teams) stays its own.

mod context;
mod critical;
mod depend;
mod locks;
mod loops;
mod membership;
mod ordered;
mod parallel;
mod pool;
mod query;
mod queue;
mod refused;
mod region;
mod schedule;
mod sections;
mod settings;
mod share;
mod single;
mod sync;
mod task;
mod task_record;
mod taskloop;
mod team;
mod work_sharing;
