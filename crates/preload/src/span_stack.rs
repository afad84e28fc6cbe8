//! Stacks inside the span, each above a guard range.

use crate::map::{allow_again, allow_here, forbid_here};
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::Node;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes below a stack that end a runaway recursion.
const GUARD: usize = 16 * PAGE_SIZE;

/// A stack of `bytes`, a whole number of pages, whose upper end is present; `None` when the span is used up.
pub(crate) fn take(node: &'static Node, bytes: usize) -> Option<Range<usize>> {
    let bottom = node.reserve_pages(GUARD + bytes)?;
    // The guard is set on this node only: no other thread grows this stack.
    forbid_here(bottom, GUARD);
    let stack = bottom + GUARD..bottom + GUARD + bytes;
    node.begin_stack(&stack);
    Some(stack)
}

/// The stack of `main`: how far it may grow, and where it ends now.
static MAIN: Mutex<Option<(Range<usize>, usize)>> = Mutex::new(None);

/// The stack of `main`, as [`take`] gives one: all addresses that it may ever have, of which as many bytes can be used at
/// first as a thread has. The program makes it longer by a higher limit.
pub(crate) fn take_for_main(node: &'static Node) -> Option<Range<usize>> {
    let (bytes, room) = (node.default_stack(), node.longest_main_stack());
    let bottom = node.reserve_pages(GUARD + room)?;
    let stack = bottom + GUARD..bottom + GUARD + room;
    forbid_here(bottom, GUARD + room - bytes);
    node.begin_stack(&stack);
    *lock(&MAIN) = Some((stack.clone(), stack.end - bytes));
    Some(stack)
}

/// The limit on stacks has changed on this node: that of `main`, if it is here, may be as long. What can be used of it then, if it has grown.
pub(crate) fn lengthen(limit: u64) -> Option<Range<usize>> {
    let (from, to) = uninterrupted(|| {
        let mut main = lock(&MAIN);
        let (stack, start) = main.as_mut()?;
        let bytes = usize::try_from(limit).unwrap_or(usize::MAX).min(stack.len()) / PAGE_SIZE * PAGE_SIZE;
        let from = stack.end - bytes;
        (from < *start).then(|| (from, std::mem::replace(start, from)))
    })?;
    allow_here(from, to - from);
    uninterrupted(|| lock(&MAIN).as_ref().map(|(stack, _)| from..stack.end))
}

/// The thread on a stack is about to end. What the program has protected there (the JVM does) must not stay so when the memory is
/// something else.
pub(crate) fn unprotect(node: &'static Node, stack: &Range<usize>) {
    allow_again(node, stack);
}

/// Frees a stack on which no thread runs any more.
pub(crate) fn give_back(node: &'static Node, stack: &Range<usize>) {
    let bottom = stack.start - GUARD;
    node.end_stack(stack);
    allow_here(bottom, GUARD);
    node.unmap_pages(bottom, GUARD + stack.len());
}
