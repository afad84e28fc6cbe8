//! The C library's list of this node's threads.
//!
//! The links are in the [memory](crate::thread_memory) of each thread, and change when one begins or ends: then the C library blocks
//! all signals, and no fault can be resolved. A `fork` makes that memory unwritable for a moment. And in the child, before that has copies
//! of its own, the C library takes the calling thread out of the list that is still its parent's.

use crate::left_behind::has_ended;
use crate::private_stack::uninterrupted;
use crate::pthread::native_self;
use crate::thread_memory;
use gondwana_locks::{lock, try_lock};
use gondwana_node::Node;
use gondwana_page::to_usize;
use libc::pid_t;
use std::sync::Mutex;

/// At most so many bytes of a control block are before its links.
const MOST_BEFORE: usize = 4096;

/// Bytes of an address.
const WORD: usize = size_of::<usize>();

/// The threads that change the list, or are about to.
struct Changes {
    /// So many threads put others in.
    beginning: u32,
    /// The kernel's numbers of those that end.
    ending: Vec<pid_t>,
}

static CHANGES: Mutex<Changes> = Mutex::new(Changes { beginning: 0, ending: vec![] });

/// Starts a thread by a function of the C library.
pub(crate) fn begin_thread<R>(start: impl FnOnce() -> R) -> R {
    uninterrupted(|| lock(&CHANGES).beginning += 1);
    let started = start();
    uninterrupted(|| lock(&CHANGES).beginning -= 1);
    started
}

/// The calling thread is about to end.
pub(crate) fn end_thread() {
    uninterrupted(|| {
        let mut changes = lock(&CHANGES);
        changes.ending.retain(|&thread| !has_ended(thread));
        changes.ending.push(gondwana_sys::thread());
    });
}

/// Keeps the list as it is for a `fork` of the calling thread, until what this gives is called, in parent and child, with the result of the
/// fork when the child has its own memory. `None` if a thread changes the list just now. Not interrupted meanwhile.
pub(crate) fn hold(node: &Node) -> Option<impl FnOnce(pid_t)> {
    let mut changes = try_lock(&CHANGES)?;
    changes.ending.retain(|&thread| !has_ended(thread));
    if changes.beginning > 0 || !changes.ending.is_empty() {
        return None;
    }
    let links = links_to_caller(node);
    Some(move |number| {
        if number > 0 {
            for (place, to) in links.into_iter().flatten() {
                // SAFETY: a link in the memory of a thread, which the child's C library has changed, and no thread of this process.
                unsafe { (place as *mut usize).write(to) };
            }
        }
        drop(changes);
    })
}

/// The links of other threads of this node that lead to the calling one: where they are, and to where they lead.
fn links_to_caller(node: &Node) -> [Option<(usize, usize)>; 2] {
    let (start, end) = (to_usize(native_self()), thread_memory::of_caller(node).end);
    let is_of_other = |place: usize| {
        !(start..end).contains(&place) && place.is_multiple_of(WORD) && thread_memory::holds(node, place)
    };
    // SAFETY: only called for the caller's memory and that of other threads, which stays mapped.
    let read = |place: usize| unsafe { (place as *const usize).read() };
    let pairs = (start..end.min(start + MOST_BEFORE).saturating_sub(WORD)).step_by(WORD);
    let of_pair = |pair: usize| {
        // The next thread's link back to this one, and the link to this one of the thread before it.
        [read(pair).wrapping_add(WORD), read(pair + WORD)]
            .map(|place| (is_of_other(place) && read(place) == pair).then_some((place, pair)))
    };
    pairs.map(of_pair).find(|links| links.iter().any(Option::is_some)).unwrap_or_default()
}
