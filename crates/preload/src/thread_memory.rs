//! What the C library keeps of each of its threads, in this node's part of the run's [thread memory](gondwana_memory::ThreadMemory): one slot
//! for each thread, with its control block and thread-local variables at the upper end, and below them the stack on which it starts and
//! ends.

use crate::left_behind::LeftBehind;
use crate::private_stack::uninterrupted;
use crate::pthread::native_self;
use gondwana_locks::lock;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Node, native_stack};
use gondwana_page::to_usize;
use libc::pid_t;
use std::ops::Range;
use std::sync::Mutex;

/// The size of the stack on which a thread starts and ends: the C library runs little there (its own start and end, destructors of
/// thread-local objects).
const STACK: usize = 256 * 1024;

/// Bytes at the lower end of each slot that end a runaway recursion.
const GUARD: usize = PAGE_SIZE;

/// The slots that have been used.
struct Slots {
    used: usize,
    /// Slots of threads that have ended or are about to.
    left: LeftBehind,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { used: 0, left: LeftBehind::new() });

/// Bytes of a slot.
fn slot_bytes() -> usize {
    (GUARD + native_stack(STACK)).next_multiple_of(PAGE_SIZE)
}

/// Memory for a new thread. `None` if all of this node's is in use.
pub(crate) fn take(node: &Node) -> Option<Range<usize>> {
    let (own, bytes) = (node.thread_memory().own(), slot_bytes());
    let (start, fresh) = uninterrupted(|| {
        let mut slots = lock(&SLOTS);
        if let Some(start) = slots.left.take() {
            return Some((start, false));
        }
        let start = own.start + slots.used * bytes;
        (start + bytes <= own.end).then(|| {
            slots.used += 1;
            (start, true)
        })
    })?;
    if fresh {
        // SAFETY: nobody uses the slot yet. Without a guard a runaway recursion would only be found later.
        unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, start, GUARD, libc::PROT_NONE) };
    }
    Some(start + GUARD..start + bytes)
}

/// Memory from [`take`] for which there is no thread.
pub(crate) fn give_back(memory: &Range<usize>) {
    // No thread has this number.
    leave(memory.start - GUARD, pid_t::MAX);
}

/// The calling thread is about to end, and leaves its memory to others.
pub(crate) fn end_thread(node: &Node) {
    let memory = of_caller(node);
    if !memory.is_empty() {
        leave(memory.start - GUARD, gondwana_sys::thread());
    }
}

fn leave(start: usize, thread: pid_t) {
    uninterrupted(|| lock(&SLOTS).left.add(start, thread));
}

/// The memory of the calling thread; empty if it has none of [`take`].
pub(crate) fn of_caller(node: &Node) -> Range<usize> {
    // The control block, by whose address the C library knows a thread.
    let block = to_usize(native_self());
    let own = node.thread_memory().own();
    if !own.contains(&block) {
        return own.start..own.start;
    }
    let start = slot_of(node, block);
    start + GUARD..start + slot_bytes()
}

/// Where the slot of an address begins, which is in this node's part.
fn slot_of(node: &Node, address: usize) -> usize {
    let (own, bytes) = (node.thread_memory().own(), slot_bytes());
    own.start + (address - own.start) / bytes * bytes
}

/// True if an address is in the memory of this node's threads, which can be read and written: but for the moment in which a `fork`
/// stops writes to that of the thread that calls it.
pub(crate) fn holds(node: &Node, address: usize) -> bool {
    node.thread_memory().own().contains(&address) && address - slot_of(node, address) >= GUARD
}
