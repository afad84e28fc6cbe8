//! System calls and streams on shared memory.
//!
//! The kernel's own accesses do not fault: a system call that meets an absent or protected page fails with `EFAULT`.
//! Each function here first touches the memory that the kernel will read or write, and repeats the call if another
//! node took a page in between.

mod allocating;
mod asynchronous;
mod blocks;
pub(crate) mod buffered;
mod buffers;
mod by_number;
mod calls;
pub(crate) mod channels;
pub(crate) mod children;
mod copied;
mod delegated;
pub(crate) mod delegations;
pub(crate) mod descriptors;
mod directories;
mod exec;
pub(crate) mod fork_handlers;
mod forks;
mod formatted;
mod fortified;
mod memory_streams;
mod messages_elsewhere;
mod old_names;
pub(crate) mod output;
mod paths;
mod peers;
mod program;
mod queues;
pub(crate) mod record_holder;
pub(crate) mod record_locks;
mod regex;
mod scanning;
mod signals_by_number;
mod spawn;
pub(crate) mod stream_locks;
mod stream_marks;
pub(crate) mod stream_memory;
pub(crate) mod stream_order;
mod streams;
pub(crate) mod streams_elsewhere;
pub(crate) mod streams_for_others;
pub(crate) mod timers;
mod transfer;
pub(crate) mod unlocked_output;
mod variadic;
mod vectors;
mod wide_streams;
mod written;

pub(crate) use buffers::{Buffer, Failing};
pub(crate) use program::syscall;
pub(crate) use transfer::pread;

use buffers::with_present;
use gondwana_node::{Node, Thread};
use std::ffi::c_void;

/// This node, if the calling thread can ask another one.
fn asking() -> Option<&'static Node> {
    Node::current().filter(|_| !Thread::inside_runtime())
}

/// Makes `call` with `buffers` present; notifies other nodes of a standard descriptor that it opens.
pub(crate) fn with_buffers<R: Failing>(buffers: &[Buffer], mut call: impl FnMut() -> R) -> R {
    let mut result = with_present(buffers, &mut call);
    if result.failed() && descriptors::extend_after_failure() {
        result = with_present(buffers, call);
    }
    descriptors::notice();
    result
}

/// As [`with_buffers`], for functions that return their error number.
pub(crate) fn with_buffers_returning_error(buffers: &[Buffer], mut call: impl FnMut() -> i32) -> i32 {
    let mut error = 0;
    with_buffers(buffers, || {
        error = call();
        crate::errno::set(error);
        if error == 0 { 0 } else { -1 }
    });
    error
}

/// Defines exported functions of the C library in front of the real ones: after the name, the arguments that are
/// descriptors, and what the call does to one of them that may be a channel (`channels`); after the signature, the buffers that the
/// kernel will use.
#[macro_export]
macro_rules! guarded {
    ($(fn $name:ident$([$($fd:ident),* $(; $order:ident $channel:ident)?])?($($argument:ident: $type:ty),* $(,)?) -> $result:ty { $($buffer:expr),* $(,)? })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            const IS_POINT: bool = $crate::pthread::cancellation_points::is_point(stringify!($name));
            $crate::ordered!([$($($order $channel)?)?] $crate::pthread::cancel::at_point_if(IS_POINT, || {
                match $crate::placed!($name [$($($fd),*)?]) {
                    $crate::io::descriptors::Place::Here => {}
                    $crate::io::descriptors::Place::There(there) => {
                        let words = [$(gondwana_sys::Argument::word($argument)),*];
                        return there.call(stringify!($name), &words, &[$($buffer),*]);
                    }
                    $crate::io::descriptors::Place::Nowhere => return <$result as $crate::io::Failing>::FAILED,
                }
                $crate::io::with_buffers(&[$($buffer),*], || {
                    // SAFETY: forwards the caller's arguments.
                    unsafe { $crate::real!($name: fn($($type),*) -> $result)($($argument),*) }
                })
            }))
        }
    )*};
}

/// Where a function that uses these descriptors makes its call.
#[macro_export]
macro_rules! placed {
    ($name:ident []) => { $crate::io::descriptors::Place::Here };
    ($name:ident [$($fd:ident),+]) => { $crate::io::descriptors::place(&[$($fd),+], stringify!($name)) };
}

/// A call, between what `channels` does about one of its descriptors, if anything.
#[macro_export]
macro_rules! ordered {
    ([] $call:expr) => {
        $call
    };
    ([$order:ident $channel:ident] $call:expr) => {
        $crate::io::channels::$order($channel, || $call)
    };
}

/// Bytes of the private buffer through which a stream function moves its data; longer transfers fill it several times.
pub(crate) const BOUNCE: usize = 64 * 1024;

/// True if the first or the last byte of the range is shared.
pub(crate) fn is_shared(start: *const c_void, length: usize) -> bool {
    let Some(node) = Node::current() else { return false };
    length > 0 && (node.is_shared(start as usize) || node.is_shared(start as usize + length - 1))
}
