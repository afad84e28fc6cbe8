//! The allocator of this library itself: the C library's heap, which is private to the node, never the shared heap of
//! the program's `malloc`.

use crate::private_stack::uninterrupted;
use gondwana_interpose::{CLibraryHeap, CallGuard};

/// The C library's heap, where nothing stops a thread midway.
pub(crate) type Private = CLibraryHeap<Uninterrupted>;

/// The receiving thread allocates too. If a thread held the allocator's lock while it waited for a page of its stack,
/// or for a page that a signal handler of the program needs, both threads would deadlock.
pub(crate) struct Uninterrupted;

impl CallGuard for Uninterrupted {
    fn during<R>(call: impl FnOnce() -> R) -> R {
        uninterrupted(call)
    }
}
