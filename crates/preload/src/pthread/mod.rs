//! `pthread_*`, `sem_*` and the C++ runtime's guards.
//!
//! An object in memory whose addresses mean the same on all nodes is identified by its address, and its state is in the runtime;
//! the program's memory holds only the initialisation data. Objects elsewhere, such as those of a runtime library, stay the C
//! library's.

pub(crate) mod attributes;
mod barrier;
pub(crate) mod between_processes;
pub(crate) mod cancel;
pub(crate) mod cancellation_points;
mod cond;
pub(crate) mod futex;
mod guard;
mod identity;
pub(crate) mod inherited;
mod key;
mod mutex;
mod mutex_kind;
mod named_semaphore;
mod once;
mod robust;
mod rwlock;
pub(crate) mod semaphore;
mod thread;

pub(crate) use identity::{kill_here, native_self};
pub(crate) use robust::expect as expect_robust_mutexes;
pub(crate) use thread::{foreign_ends, spec, start as start_thread, start_in};

use gondwana_node::Node;
use libc::{c_int, clockid_t, timespec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The node, if threads of other nodes can name the object at this address.
#[inline]
fn sharing<T>(object: *const T) -> Option<&'static Node> {
    Node::current().filter(|node| node.is_common(object as usize))
}

/// Tells the user, once, of an object for several processes in a file that they may all have mapped: here it is the program's alone.
fn note_process_shared(node: &Node, object: usize, is_process_shared: impl FnOnce() -> bool) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if node.mapped_files().node_of(object).is_some()
        && is_process_shared()
        && !TOLD.swap(true, Ordering::Relaxed)
    {
        node.refuse("a mutex for several processes in a mapped file: other processes do not see it");
    }
}

/// The C library's convention: 0 or an error number.
fn code(result: Result<(), i32>) -> c_int {
    result.err().unwrap_or(0)
}

/// True for the clocks by which a thread can wait.
fn is_supported(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
}

/// When a wait until `time` on `clock` ends.
///
/// # Errors
/// `EINVAL` for a malformed time or an unknown clock.
fn deadline(clock: clockid_t, time: *const timespec) -> Result<Instant, i32> {
    // SAFETY: the caller of the wrapped function passes a valid time.
    let time = unsafe { *time };
    if !(0..1_000_000_000).contains(&time.tv_nsec) || !is_supported(clock) {
        return Err(libc::EINVAL);
    }
    // SAFETY: all zero is a valid time, and the result goes to a private variable.
    let now = unsafe {
        let mut now: timespec = std::mem::zeroed();
        libc::clock_gettime(clock, &mut now);
        now
    };
    let nanoseconds = |time: timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let left = (nanoseconds(time) - nanoseconds(now)).clamp(0, i128::from(u32::MAX) * 1_000_000_000);
    Ok(Instant::now() + Duration::from_nanos(u64::try_from(left).unwrap_or(0)))
}

/// Defines an exported function: the code for a shared object; otherwise the C library's function is called. A
/// function that returns 0 may have an `at_hand` fast path, which runs first without a check that the object is
/// shared, and returns true if it has done everything.
#[macro_export]
macro_rules! shared_or_real {
    ($(fn $name:ident($object:ident: $object_type:ty $(, $argument:ident: $type:ty)* $(,)?) -> $result:ty
        = $(at_hand |$known:ident| $at_hand:expr, else)? |$node:ident| $body:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($object: $object_type $(, $argument: $type)*) -> $result {
            // Out of line, so that the path at hand saves no registers. Stacks show the name of the function around it.
            #[cold]
            #[inline(never)]
            fn whole($object: $object_type $(, $argument: $type)*) -> $result {
                const ORDER: $crate::pthread::between_processes::Order =
                    $crate::pthread::between_processes::order(stringify!($name));
                match $crate::pthread::sharing($object) {
                    Some(node)
                        if $crate::pthread::between_processes::is_native(node, $object, ORDER) =>
                    {
                        $crate::pthread::between_processes::natively(node, ORDER, || {
                            // SAFETY: forwards the caller's arguments.
                            unsafe {
                                $crate::real!($name: fn($object_type $(, $type)*) -> $result)($object $(, $argument)*)
                            }
                        })
                    }
                    Some($node) => $body,
                    // SAFETY: forwards the caller's arguments.
                    None => unsafe {
                        $crate::real!($name: fn($object_type $(, $type)*) -> $result)($object $(, $argument)*)
                    },
                }
            }
            // An object in a mapped file may be the C library's now, after one of the runtime's in its place.
            $(if !gondwana_node::MappedFiles::hold($object as usize)
                && gondwana_node::Node::current().is_some_and(|$known| $at_hand)
            {
                return 0;
            })?
            whole($object $(, $argument)*)
        }
    )*};
}
