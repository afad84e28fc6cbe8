//! `copyin`: the threads of a region copy variables of the thread that begins it, each to its own ones.
//!
//! What gcc and clang compile finds those variables by an address of thread-local storage, which is private to each node. At the
//! address of a variable of the main thread, another node has the same variable of the thread that the system has started it with, because all nodes
//! load the same objects in the same order. That thread serves its node and uses no variable of the program. So before a region of the
//! main thread whose data point to such variables, its node has the others write there what they hold.

use super::assignment::Assignment;
use super::refused::refuse;
use super::task_messages::COPY_IN;
use gondwana_elf::loaded;
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use gondwana_page::to_usize;
use gondwana_racing::{RacingBytes, RacingBytesMut};
use gondwana_topology::{Id, NodeId};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, OnceLock};

/// What is copied at a time, if it has changed since the last time.
const CHUNK: usize = 4096;

/// gcc's data of a region hold the addresses of the variables; so many of their words are looked at, a page.
const WORDS: usize = 512;

/// So many where the region is refused because of them.
const WORDS_OF_OTHERS: usize = 64;

/// The program's thread-local variables of this node's first thread, one range for each object.
static FIRST: OnceLock<Vec<Range<usize>>> = OnceLock::new();

/// What other nodes have of the main thread's variables, chunk by chunk; nothing if they have none of a range.
static COPIED: Mutex<Vec<Vec<u8>>> = Mutex::new(vec![]);

/// Called by the thread that the system has started this node with.
pub(super) fn begin() {
    FIRST.get_or_init(programs_thread_locals);
}

/// The calling thread is about to begin a region: threads of other nodes find what it passes by address of its thread-local variables.
pub(super) fn share(assignment: &Assignment) {
    let Some(first) = FIRST.get().filter(|first| !first.is_empty()) else { return };
    let Some(node) = Node::current().filter(|node| node.nodes() > 1) else { return };
    let thread = Thread::current(node);
    if thread.id != node.main_thread() {
        return refuse_of_others(assignment, &thread.stack);
    }
    let words = match &assignment.call {
        Some(call) => call.arguments().to_vec(),
        None => words(assignment.data, &thread.stack),
    };
    for (index, range) in first.iter().enumerate() {
        if words.iter().any(|word| range.contains(word)) {
            copy(node, index, range);
        }
    }
}

/// Another thread than the main one is about to begin a region. No other node has its thread-local variables, so that a region that is
/// passed their addresses would copy wrong values. What is behind gcc's data may be such an address by chance: fewer words are looked at.
fn refuse_of_others(assignment: &Assignment, stack: &Range<usize>) {
    let mut words = match &assignment.call {
        Some(call) => call.arguments().to_vec(),
        None => words(assignment.data, stack),
    };
    if assignment.call.is_none() {
        words.truncate(WORDS_OF_OTHERS);
    }
    let is_passed = |range: &Range<usize>| words.iter().any(|word| range.contains(word));
    if programs_thread_locals().iter().any(is_passed) {
        refuse("copyin of a region that another thread than the main one begins");
    }
}

/// The program's thread-local variables of the calling thread, one range for each object.
fn programs_thread_locals() -> Vec<Range<usize>> {
    let mut found = vec![];
    loaded::visit(|object| {
        let is_programs = object.path().as_os_str().is_empty() || object.is_library_of_program();
        found.extend(Some(object.thread_locals()).filter(|range| is_programs && !range.is_empty()));
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The words at an address in the calling thread's stack.
fn words(data: usize, stack: &Range<usize>) -> Vec<usize> {
    if !stack.contains(&data) {
        return vec![];
    }
    let mut bytes = [0; WORDS * size_of::<usize>()];
    let length = bytes.len().min(stack.end - data);
    // SAFETY: inside the stack of the calling thread.
    unsafe { RacingBytes::new(data as *const u8, length) }.copy_to(&mut bytes[..length]);
    bytes[..length].as_chunks().0.iter().map(|word| usize::from_ne_bytes(*word)).collect()
}

/// Has the other nodes write what has changed of some of the main thread's variables.
fn copy(node: &'static Node, index: usize, range: &Range<usize>) {
    // SAFETY: thread-local variables of the calling thread, which stay as long as it does.
    let now = unsafe { RacingBytes::new(range.start as *const u8, range.len()) };
    let mut all = lock(&COPIED);
    if all.len() <= index {
        all.resize_with(index + 1, Vec::new);
    }
    let copied = &mut all[index];
    let is_new = copied.is_empty();
    copied.resize(range.len(), 0);
    let mut start = 0;
    for before in copied.chunks_mut(CHUNK) {
        let mut bytes = vec![0; before.len()];
        now.part(start..start + before.len()).copy_to(&mut bytes);
        if is_new || bytes != before {
            before.copy_from_slice(&bytes);
            let mut words = vec![COPY_IN, (range.start + start) as u64, bytes.len() as u64];
            words.extend(bytes.chunks(8).map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_ne_bytes(word)
            }));
            let others = (0..node.nodes()).map(NodeId::from_index).filter(|other| *other != node.id());
            for other in others {
                node.tell_only(other, words.clone());
            }
        }
        start += before.len();
    }
}

/// Another node has the main thread, and tells what its variables hold.
pub(super) fn heard(address: u64, length: u64, words: &[u64]) {
    let (start, length) = (to_usize(address), to_usize(length));
    let is_ours = |range: &Range<usize>| range.start <= start && start + length <= range.end;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(length).collect();
    if bytes.len() != length || !FIRST.get().is_some_and(|first| first.iter().any(is_ours)) {
        crate::report::fatal(
            "OpenMP: copyin needs the program and its libraries to have their thread-local variables at the same addresses on all nodes",
        );
    }
    let mut bytes = bytes;
    let length = bytes.len();
    // SAFETY: the program's thread-local variables of this node's first thread, which uses none of them; threads that copy from them begin the
    // region later.
    unsafe {
        RacingBytesMut::new(start as *mut u8, length).copy_from(RacingBytes::new(bytes.as_mut_ptr(), length))
    };
}
