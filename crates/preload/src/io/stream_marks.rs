//! Names of streams in messages, and the streams whose end-of-file or error mark other nodes have.

use super::stream_memory;
use crate::errno;
use gondwana_locks::lock;
use gondwana_node::{Node, ProcessChange, StreamCall};
use libc::FILE;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of a stream in messages: its address, or a constant for standard input, which is not in the divided
/// ranges.
pub(super) fn name_of(stream: *mut FILE) -> u64 {
    if stream == stream_memory::standard_input() { StreamCall::INPUT } else { stream as u64 }
}

/// The stream that is called so.
pub(super) fn stream_of(name: u64) -> *mut FILE {
    match name {
        StreamCall::INPUT => stream_memory::standard_input(),
        name => stream_memory::common_stream(name).unwrap_or(name as *mut FILE),
    }
}

/// Streams of this node whose marks other nodes have; see [`super::buffered::mark`].
static MARKED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

static ARE_MARKED: AtomicBool = AtomicBool::new(false);

/// Clears the marks of a stream of this node on other nodes, at a call that clears them here.
pub(super) fn unmark_elsewhere(stream: *mut FILE) {
    if !ARE_MARKED.load(Ordering::Relaxed) {
        return;
    }
    let name = name_of(stream);
    let was_marked = lock(&MARKED).remove(&name);
    if let (true, Some(node)) = (was_marked, Node::current()) {
        let before = errno::get();
        // Forgetting cannot fail.
        let _ = node.change_elsewhere(ProcessChange::UnmarkStream { stream: name });
        errno::set(before);
    }
}

/// Records that other nodes have marks of a stream of this node, given by its name.
pub(super) fn note_marks(name: u64) {
    lock(&MARKED).insert(name);
    ARE_MARKED.store(true, Ordering::Relaxed);
}
