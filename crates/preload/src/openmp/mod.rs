//! OpenMP: the entry points of gcc's pragmas, in place of the compiler's own runtime.
//!
//! libgomp cannot run on several nodes: its threads write to each other's thread-local variables, and it waits by
//! inline system calls and atomic instructions. This runtime keeps shared state in shared memory and accesses it only
//! under cluster-wide locks, so it is correct under each consistency. Parts of libgomp without a counterpart here
//! that touch no other thread (devices, leagues of teams) carry out what this runtime has put in order.

mod assignment;
mod claimed;
mod common;
mod constructs;
mod context;
mod critical;
mod depend;
mod doacross;
mod fortran;
mod kmpc;
mod league;
mod locks;
mod loops;
mod membership;
#[cfg(test)]
mod names;
mod ordered;
mod parallel;
mod pool;
mod query;
mod queue;
mod reduction;
mod refused;
mod region;
mod schedule;
mod sections;
mod settings;
mod share;
mod single;
mod sync;
mod target;
mod task;
mod task_record;
mod taskloop;
mod team;
mod work_sharing;
