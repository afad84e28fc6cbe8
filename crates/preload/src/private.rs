//! The allocator of this library itself: the C library's own heap, which is private to the node, never the
//! shared heap that `malloc` means to the program.

use crate::private_stack::uninterrupted;
use gondwana_interpose::{CLibraryHeap, CallGuard};

/// The C library's heap, where nothing stops a thread midway.
pub type Private = CLibraryHeap<Uninterrupted>;

/// The thread that receives messages allocates, too. A thread that waited for a page of its own stack while it held the
/// allocator's lock, or for a page that a handler of the program needs, would wait for ever: the receiver would wait for
/// it.
pub struct Uninterrupted;

impl CallGuard for Uninterrupted {
    fn during<R>(call: impl FnOnce() -> R) -> R {
        uninterrupted(call)
    }
}
