//! Stacks inside the span, each above a guard range.

use crate::map::{allow_again, allow_here, forbid_here};
use gondwana_memory::PAGE_SIZE;
use gondwana_node::Node;
use std::ops::Range;

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
