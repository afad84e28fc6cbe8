//! More numbers for a node that has used up its own.
//!
//! All nodes have the same division. A thread changes it on all of them while no other thread of the run does.

use super::division::{Division, FEW};
use super::limit;
use super::place::Place;
use super::stops::{self, Numbers};
use crate::process::{common, in_order, tell};
use gondwana_node::{ProcessChange, Thread};
use libc::c_int;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};

/// From this number of its own on, this node needs more soon.
static LAST: AtomicI32 = AtomicI32::new(c_int::MAX);

/// Called with a descriptor that a call has opened, or -1: gets more numbers in time, so that also calls inside libraries find some.
#[inline]
pub(crate) fn opened(number: c_int) {
    if number >= LAST.load(Ordering::Relaxed) {
        extend_own();
    }
}

/// Called after a call that has failed: true if it has because the node had no number left, and now has more.
#[cold]
pub(crate) fn extend_after_failure() -> bool {
    crate::errno::get() == libc::EMFILE && extend_own()
}

/// Makes a call that copies a descriptor to the first free number from one on.
pub(crate) fn copying(fd: c_int, least: c_int, call: impl Fn() -> c_int) -> c_int {
    let Some((numbers, owner)) = Numbers::get().zip(owner_of(fd)) else { return call() };
    let extend = || extend_from(owner.into(), least, FEW);
    // The node's own numbers may be far above one that the program has chosen.
    if numbers.division.is_nobodys(least) {
        extend();
    }
    let result = call();
    if result < 0 && crate::errno::get() == libc::EMFILE && extend() { call() } else { result }
}

/// The node that makes calls on a descriptor.
fn owner_of(fd: c_int) -> Option<u16> {
    let numbers = Numbers::get()?;
    if stops::is_stop(fd) { numbers.division.owner(fd) } else { Some(numbers.me) }
}

/// Gives a number of the program's choice, and no other, to the node that is to use it, unless it is another's.
pub(super) fn claim(number: c_int, place: &Place) {
    let Some(numbers) = Numbers::get().filter(|numbers| numbers.division.is_nobodys(number)) else { return };
    let owner = match place {
        Place::Here => numbers.me.into(),
        Place::There(there) => there.owner,
        Place::Nowhere => return,
    };
    extend_from(owner, number, 1);
}

/// Gets more numbers for this node. True if there were any.
fn extend_own() -> bool {
    Numbers::get().is_some_and(|numbers| extend(numbers.me.into()))
}

/// Gets more numbers for a node. True if there were any.
pub(super) fn extend(owner: usize) -> bool {
    extend_by(owner, |division, node, limit| division.next(0, division.more(node, limit), limit))
}

/// Gets at most so many numbers for a node, from one on. True if there were any.
fn extend_from(owner: usize, least: c_int, count: c_int) -> bool {
    extend_by(owner, |division, _, limit| division.next(least, count, limit))
}

/// Gives a node the numbers that a function chooses from those of the program, of which nobody else gives any meanwhile.
fn extend_by(owner: usize, next: impl FnOnce(&Division, u16, c_int) -> Option<Range<c_int>>) -> bool {
    let asks = Thread::is_of_program() && !Thread::inside_runtime();
    let (Some(node), Some(numbers)) = (common().filter(|_| asks), Numbers::get()) else { return false };
    let Ok(owner) = u16::try_from(owner) else { return false };
    let before = crate::errno::get();
    let extended = in_order(node, || {
        let Some(more) = next(numbers.division, owner, limit::of_numbers()) else { return false };
        give_here(owner, more.start, more.end);
        tell(node, ProcessChange::Descriptors { node: owner, first: more.start, end: more.end });
        true
    });
    crate::errno::set(before);
    extended
}

/// On each node: numbers are a node's from now on.
pub(crate) fn give_here(owner: u16, first: c_int, end: c_int) {
    let Some(numbers) = Numbers::get() else { return };
    numbers.division.give(first..end, owner);
    if end > numbers.division.room() {
        stops::fill(numbers, end);
    }
    if owner == numbers.me {
        stops::free(first..end);
        begin(numbers);
    }
}

/// Notes how many numbers the node has.
pub(super) fn begin(numbers: &Numbers) {
    LAST.store(numbers.division.last_of(numbers.me), Ordering::Relaxed);
}

/// In a child, which is no node.
pub(super) fn end() {
    LAST.store(c_int::MAX, Ordering::Relaxed);
}
