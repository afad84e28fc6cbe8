//! Names of streams among nodes, and the streams whose end or failure other nodes remember.

use super::stream_memory;
use crate::errno;
use gondwana_node::{Node, ProcessChange};
use libc::FILE;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What nodes call a stream among each other: its address, but for standard input, which is not in memory that they have
/// divided.
pub fn name_of(stream: *mut FILE) -> u64 {
    if stream == stream_memory::standard_input() { 0 } else { stream as u64 }
}

/// The stream that is called so.
pub fn stream_of(name: u64) -> *mut FILE {
    match name {
        0 => stream_memory::standard_input(),
        address => address as *mut FILE,
    }
}

/// Streams of this node of which others have been told that they are at their end, or have failed; see [`super::buffered::mark`].
static MARKED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

static ARE_MARKED: AtomicBool = AtomicBool::new(false);

/// A call that ends this is made on a stream of this node: others forget it.
pub fn unmark_elsewhere(stream: *mut FILE) {
    if !ARE_MARKED.load(Ordering::Relaxed) {
        return;
    }
    let name = name_of(stream);
    let was_marked = MARKED.lock().expect("not poisoned").remove(&name);
    if let (true, Some(node)) = (was_marked, Node::current()) {
        let before = errno::get();
        // Forgetting cannot fail.
        let _ = node.change_elsewhere(ProcessChange::UnmarkStream { stream: name });
        errno::set(before);
    }
}

/// Notes that other nodes have been told that a stream of this one, by its name, is at its end or has failed.
pub fn note_marks(name: u64) {
    MARKED.lock().expect("not poisoned").insert(name);
    ARE_MARKED.store(true, Ordering::Relaxed);
}
