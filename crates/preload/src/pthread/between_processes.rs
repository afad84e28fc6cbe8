//! Mutexes, conditions, read-write locks, barriers and spin locks that processes share: where all nodes map the same files, those in mapped files are
//! the C library's, so that other processes, among them children, wait for the program's threads and these for them. What a thread has
//! written before it lets another one go on, that sees.

use crate::exit::flush_before_unlock;
use crate::process::scheduling::pause;
use gondwana_node::Node;
use libc::{
    c_int, pthread_barrier_t, pthread_barrierattr_t, pthread_cond_t, pthread_mutex_t, pthread_mutexattr_t,
    pthread_rwlock_t, pthread_rwlockattr_t, pthread_spinlock_t, sem_t,
};

/// Where the C library keeps of an object that processes share it.
pub(crate) enum Kept {
    /// In these bits of the word at an offset.
    In(usize, u32),
    /// Nowhere: threads of one process can use such a one, too.
    Nowhere,
    /// Such objects have a way of their own.
    Elsewhere,
}

/// A kind of objects.
pub(crate) trait BetweenProcesses {
    const KEPT: Kept;
}

macro_rules! kept {
    ($($type:ty: $kept:expr;)*) => {$(
        impl BetweenProcesses for $type {
            const KEPT: Kept = $kept;
        }
    )*};
}

kept! {
    pthread_mutex_t: Kept::In(16, 128);
    pthread_cond_t: Kept::In(36, 1);
    pthread_rwlock_t: Kept::In(28, u32::MAX);
    pthread_barrier_t: Kept::In(12, u32::MAX);
    pthread_spinlock_t: Kept::Nowhere;
    sem_t: Kept::Elsewhere;
}

/// What a function does to the order between threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// It initialises the object: not one of these yet.
    Begins,
    Acquires,
    Releases,
    Both,
    None,
}

/// What a function of a name does.
pub(crate) const fn order(name: &str) -> Order {
    let name = name.as_bytes();
    if ends(name, b"_init") {
        Order::Begins
    } else if ends(name, b"unlock") || ends(name, b"signal") || ends(name, b"broadcast") {
        Order::Releases
    } else if ends(name, b"wait") {
        Order::Both
    } else if ends(name, b"lock") {
        Order::Acquires
    } else {
        Order::None
    }
}

const fn ends(name: &[u8], end: &[u8]) -> bool {
    let mut at = 0;
    while at < end.len() {
        if name.len() < end.len() || name[name.len() - end.len() + at] != end[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// True if an object is the C library's here.
#[inline]
pub(crate) fn is_native<T: BetweenProcesses>(node: &Node, object: *const T, order: Order) -> bool {
    order != Order::Begins
        && is_in_common_file(node, object as usize)
        && match T::KEPT {
            Kept::In(offset, bits) => {
                // SAFETY: the caller of the wrapped function passes an object, which is longer than that and aligned for words.
                let word = unsafe { object.cast::<u8>().add(offset).cast::<u32>().read_volatile() };
                word & bits != 0
            }
            Kept::Nowhere => true,
            Kept::Elsewhere => false,
        }
}

/// True for an address in a file that all nodes map.
pub(super) fn is_in_common_file(node: &Node, address: usize) -> bool {
    node.mapped_files().are_together() && node.mapped_files().node_of(address).is_some()
}

/// Makes a call of the C library's.
pub(crate) fn natively(node: &'static Node, order: Order, call: impl FnOnce() -> c_int) -> c_int {
    if matches!(order, Order::Releases | Order::Both) {
        flush_before_unlock(node);
        // Who waits learns of it from the kernel, and no message of this node follows.
        node.release_and_wait();
    }
    let paused = matches!(order, Order::Acquires | Order::Both).then(pause);
    let result = call();
    drop(paused);
    if matches!(order, Order::Acquires | Order::Both) {
        node.acquire(None);
    }
    result
}

/// Defines functions that tell whether attributes are those of an object between processes.
macro_rules! said {
    ($($name:ident($type:ty) by $get:ident;)*) => {$(
        /// # Safety
        /// The attributes are null or valid.
        pub(super) unsafe fn $name(attributes: *const $type) -> bool {
            let mut shared = 0;
            // SAFETY: the caller's promise; the C library only reads and writes memory of the process.
            unsafe {
                !attributes.is_null()
                    && libc::$get(attributes, &raw mut shared) == 0
                    && shared == libc::PTHREAD_PROCESS_SHARED
            }
        }
    )*};
}

said! {
    is_said_of_mutex(pthread_mutexattr_t) by pthread_mutexattr_getpshared;
    is_said_of_lock(pthread_rwlockattr_t) by pthread_rwlockattr_getpshared;
    is_said_of_barrier(pthread_barrierattr_t) by pthread_barrierattr_getpshared;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_order_by_their_names() {
        assert!(order("pthread_mutex_trylock") == Order::Acquires);
        assert!(order("pthread_rwlock_unlock") == Order::Releases);
        assert!(order("pthread_cond_timedwait") == Order::Both);
        assert!(order("pthread_barrier_init") == Order::Begins);
        assert!(order("pthread_mutex_destroy") == Order::None);
    }
}
