//! The program break (`brk`, `sbrk`): memory that grows and shrinks at its end, from which some allocators take theirs.
//!
//! The kernel's is that of one process. Here it is a range of the span. Where it begins and ends is in the library's page, under a mutex, as any
//! node may move it.

use super::low;
use crate::process::{holding, result_of};
use gondwana_node::{Caller, MutexKind, Node};
use gondwana_page::PAGE_SIZE;
use libc::{c_int, c_void, intptr_t};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Addresses that the memory may grow into: the first of these that the span has room for.
const ROOM: [usize; 4] = [64 << 30, 4 << 30, 256 << 20, 16 << 20];

/// Where the state is in the library's page.
pub(crate) const START: usize = low::START - size_of::<State>();

/// All zero before somebody asks for it.
#[repr(C)]
struct State {
    /// Where the memory begins; 0 if there is none yet.
    start: usize,
    /// Where it ends.
    end: usize,
    /// Where it ends at most.
    most: usize,
}

/// The shared state. Null in a process that has the kernel's own: in a run of one node, and before a process is a node.
static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// From now on this process has what all nodes share.
pub(crate) fn begin(node: &Node) {
    STATE.store((node.library_page() + START) as *mut State, Ordering::Relaxed);
}

/// Moves the break, if there is room. Where it was before, and where it is now; `None` in a process that has the kernel's own.
fn change(new: impl FnOnce(usize) -> Option<usize>) -> Option<Range<usize>> {
    let state = STATE.load(Ordering::Relaxed);
    if state.is_null() {
        return None;
    }
    // The child of a `fork`, which is no node, has its own copy, and one thread.
    let Some(node) = Node::current() else {
        // SAFETY: nobody else uses the state.
        return unsafe { &mut *state }.change(None, new);
    };
    holding(node, state as usize, MutexKind::Normal, || {
        // SAFETY: shared memory of the library, whose zeros are a state; the mutex is held.
        unsafe { &mut *state }.change(Some(node), new)
    })
}

impl State {
    fn change(
        &mut self,
        node: Option<&'static Node>,
        new: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<Range<usize>> {
        if self.start == 0 {
            // The kernel's own break would be this node's alone: without room there is none.
            let Some(place) = reserve(node?) else { return Some(0..0) };
            *self = Self { start: place.start, end: place.start, most: place.end };
        }
        let before = self.end;
        self.end = new(before).filter(|end| (self.start..=self.most).contains(end)).unwrap_or(before);
        // What is given up reads as zero when it comes back.
        let given_up = self.end.next_multiple_of(PAGE_SIZE)..before.next_multiple_of(PAGE_SIZE);
        if !given_up.is_empty() {
            // SAFETY: the program gives it up.
            unsafe {
                match node {
                    Some(node) => node.discard(given_up),
                    None => (given_up.start as *mut u8).write_bytes(0, given_up.len()),
                }
            }
        }
        Some(before..self.end)
    }
}

fn reserve(node: &'static Node) -> Option<Range<usize>> {
    ROOM.into_iter().find_map(|room| node.map_pages(room, Caller::NONE).map(|start| start..start + room))
}

/// As the C library's function of this name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sbrk(increment: intptr_t) -> *mut c_void {
    let mut wanted = usize::MAX;
    let moved = change(|end| {
        wanted = end.checked_add_signed(increment)?;
        Some(wanted)
    });
    match moved {
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(sbrk: fn(intptr_t) -> *mut c_void)(increment) },
        // The C library believes that the break has moved downwards, even if it could not.
        Some(Range { start, end }) if end >= wanted => start as *mut c_void,
        Some(_) => {
            crate::errno::set(libc::ENOMEM);
            usize::MAX as *mut c_void
        }
    }
}

/// As [`sbrk`]; libraries that define that one call this.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __sbrk(increment: intptr_t) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { sbrk(increment) }
}

/// As the C library's function of this name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn brk(wanted: *mut c_void) -> c_int {
    let wanted = wanted as usize;
    match change(|_| Some(wanted)) {
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(brk: fn(*mut c_void) -> c_int)(wanted as *mut c_void) },
        Some(moved) => result_of(if moved.end >= wanted { Ok(()) } else { Err(libc::ENOMEM) }),
    }
}

/// The system call, which gives where the break is then; `None` in a process that has the kernel's own.
pub(crate) fn by_number(wanted: usize) -> Option<usize> {
    change(|_| Some(wanted)).map(|moved| moved.end)
}
