//! What belongs to the process of a program rather than to its memory: one for all nodes.
//!
//! A thread that changes something makes the change in its own process and then in those of all other nodes, before the
//! call returns. A mutex of the runtime puts changes in an order that all nodes agree on.

pub(crate) mod calls;
mod conversions;
mod credentials;
mod cxx_locales;
pub(crate) mod directory;
pub(crate) mod environment;
pub(crate) mod extended_state;
mod handlers;
mod hash_table;
pub(crate) mod identity;
mod intervals;
pub(crate) mod kill;
mod langinfo;
mod locale;
mod locale_objects;
pub(crate) mod memory;
pub(crate) mod memory_barrier;
mod messages;
mod printf_specifiers;
pub(crate) mod scheduling;
pub(crate) mod standard_streams;
mod static_results;
pub(crate) mod stray_signals;
pub(crate) mod usage;
mod wide_classes;
pub(crate) mod zone;

use crate::private_stack::uninterrupted;
use gondwana_node::{MutexKind, Node, ProcessChange};
use gondwana_page::PAGE_SIZE;
use libc::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes at the end of the library's page that name mutexes. They hold nothing, but for the last word.
pub(crate) const MUTEX_BYTES: usize = 64;

/// The word at the very end of that page, behind all mutexes: where `strtok` goes on.
fn next_token(node: &Node) -> *mut *mut c_char {
    (node.library_page() + PAGE_SIZE - size_of::<usize>()) as *mut *mut c_char
}

/// Set once other nodes have to be told of changes.
static COMMON: AtomicBool = AtomicBool::new(false);

/// From now on changes of this process are made on all nodes.
pub(crate) fn begin() {
    scheduling::begin();
    COMMON.store(true, Ordering::Relaxed);
}

/// The node, if what its process has is common to several.
pub(crate) fn common() -> Option<&'static Node> {
    Node::current().filter(|_| COMMON.load(Ordering::Relaxed))
}

/// Calls a function while no other thread of the run changes what processes have in common. Handlers of signals wait, and
/// the stack is private.
pub(crate) fn in_order<R>(node: &'static Node, call: impl FnOnce() -> R) -> R {
    uninterrupted(|| one_at_a_time(node, call))
}

/// Calls a function of the program or its libraries while no other thread of the run does so.
fn one_at_a_time<R>(node: &'static Node, call: impl FnOnce() -> R) -> R {
    holding(node, node.library_page() + PAGE_SIZE - MUTEX_BYTES, MutexKind::Normal, call)
}

/// Calls a function while the calling thread holds a mutex of the runtime, which has its name from an address.
pub(crate) fn holding<R>(node: &'static Node, mutex: usize, kind: MutexKind, call: impl FnOnce() -> R) -> R {
    must(node.mutex_lock(mutex, || kind, None));
    let result = call();
    must(node.mutex_unlock(mutex, || kind));
    result
}

fn must(result: Result<(), i32>) {
    if let Err(error) = result {
        crate::report::fatal(&format!(
            "what processes have in common: {}",
            std::io::Error::from_raw_os_error(error)
        ));
    }
}

/// Makes a change on all other nodes that cannot fail there if it did not fail here.
pub(crate) fn tell(node: &'static Node, change: ProcessChange) {
    must(node.change_elsewhere(change));
}

/// The C library's convention: 0, or -1 with an error number in `errno`.
pub(crate) fn result_of(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            crate::errno::set(error);
            -1
        }
    }
}
