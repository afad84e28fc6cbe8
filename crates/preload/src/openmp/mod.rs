//! OpenMP: the entry points of gcc's pragmas, in place of the compiler's own runtime.
//!
//! libgomp cannot run on several nodes: its threads write to each other's thread-local variables, and it waits by
//! inline system calls and atomic instructions. This runtime has its state in memory of each node that
//! messages keep in step, so it is correct under each consistency. Parts of libgomp without a counterpart here
//! that touch no other thread (devices, leagues of teams) carry out what this runtime has put in order.

mod affinity;
mod allocators;
mod assignment;
mod blocks;
mod cancel;
mod claimed;
mod common;
mod constructs;
mod context;
mod crew;
mod critical;
mod depend;
mod display;
mod doacross;
mod event;
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
mod places;
mod pool;
mod query;
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
mod task_messages;
mod task_wait;
mod taskloop;
mod team;
mod times;
mod work_sharing;

pub(crate) use task_messages::{later, told};

/// Called by the thread that the system has started this node with, before the program begins.
pub(crate) fn begin(node: &gondwana_node::Node) {
    display::begin(node);
}
