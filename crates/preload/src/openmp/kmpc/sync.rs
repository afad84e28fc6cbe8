//! Barriers, `single`, `master`, critical sections, reductions, ordered parts and flushes.

use super::Place;
use crate::openmp::cancel::{self, What};
use crate::openmp::times::{Ends, telling_return};
use crate::openmp::{context, membership, single, sync, work_sharing};
use gondwana_node::Node;
use libc::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};

/// What a critical section or a reduction is known by: its address.
type LockName = *mut c_void;

/// Defines functions that the compiler calls with its place and thread, and more.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_place: Place, _thread: c_int $(, $argument: $type)*) $(-> $result)? {
            $body
        }
    )*};
}

exported! {
    __kmpc_single() -> c_int = c_int::from(single::is_first());
    __kmpc_end_single() = {};
    __kmpc_master() -> c_int = c_int::from(context::get().number == 0);
    __kmpc_end_master() = {};
    __kmpc_masked(filter: c_int) -> c_int = c_int::from(context::get().number.cast_signed() == filter);
    __kmpc_end_masked() = {};
    __kmpc_critical(name: LockName) = sync::lock(name);
    __kmpc_critical_with_hint(name: LockName, _hint: u32) = sync::lock(name);
    __kmpc_end_critical(name: LockName) = sync::unlock(name);
    __kmpc_ordered() = work_sharing::await_turn();
    __kmpc_end_ordered() = {};
    __kmpc_scope(_reserved: *mut c_void) = {};
    __kmpc_end_scope(_reserved: *mut c_void) = {};
    __kmpc_cancel(which: c_int) -> c_int = c_int::from(cancel::cancel(what(which)));
    __kmpc_cancellationpoint(which: c_int) -> c_int = c_int::from(cancel::is_cancelled(what(which)));
    __kmpc_reduce_nowait(_count: c_int, _size: usize, _data: *mut c_void, _combine: *mut c_void, name: LockName) -> c_int =
        begin_reduction(name);
    __kmpc_end_reduce_nowait(name: LockName) = end_reduction(name);
    __kmpc_reduce(_count: c_int, _size: usize, _data: *mut c_void, _combine: *mut c_void, name: LockName) -> c_int =
        begin_reduction(name);
}

telling_return! {
    "rdx": __kmpc_barrier by barrier_at __kmpc_cancel_barrier by cancel_barrier_at;
    "rcx": __kmpc_end_reduce by end_reduce_at;
}

extern "C" fn barrier_at(_place: Place, _thread: c_int, returns_to: usize) {
    membership::barrier(Ends::Call(returns_to));
}

extern "C" fn cancel_barrier_at(_place: Place, _thread: c_int, returns_to: usize) -> c_int {
    c_int::from(cancel::barrier(Ends::Call(returns_to)))
}

extern "C" fn end_reduce_at(_place: Place, _thread: c_int, name: LockName, returns_to: usize) {
    end_reduction(name);
    membership::barrier(Ends::Call(returns_to));
}

/// What is cancelled, as the compiler names it.
fn what(number: c_int) -> What {
    match number {
        1 => What::Region,
        4 => What::Group,
        _ => What::Share,
    }
}

/// Each thread adds its part under a lock: the answer 1 says so. The other answers would have it use atomic instructions, or leave it to
/// other threads.
fn begin_reduction(name: LockName) -> c_int {
    if context::get().threads() > 1 {
        sync::lock(name);
    }
    1
}

fn end_reduction(name: LockName) {
    if context::get().threads() > 1 {
        sync::unlock(name);
    }
}

/// `flush`: what the thread has written is seen by others that flush after it, and it sees what they had flushed before.
///
/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_flush(_place: Place) {
    fence(Ordering::SeqCst);
    if let Some(node) = Node::current() {
        node.fence();
    }
}

/// Defines functions that the compiler calls with its place only, and that give a number.
macro_rules! numbers {
    ($($name:ident = $number:expr;)*) => {$(
        /// # Safety
        /// Called by code that clang has compiled.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_place: Place) -> c_int {
            $number
        }
    )*};
}

numbers! {
    // The program only gives the numbers of threads in the whole process back: those of the team do.
    __kmpc_global_thread_num = context::get().number.cast_signed();
    __kmpc_global_num_threads = context::get().threads().cast_signed();
    __kmpc_bound_thread_num = context::get().number.cast_signed();
    __kmpc_bound_num_threads = context::get().threads().cast_signed();
    __kmpc_in_parallel = c_int::from(context::get().levels().1 > 0);
    __kmpc_ok_to_fork = 1;
}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_begin(_place: Place, _flags: c_int) {}

/// # Safety
/// Called by code that clang has compiled.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __kmpc_end(_place: Place) {}
