//! Synchronisation and allocation for threads of all nodes. A process that is no node has one thread, which never
//! waits.

use crate::exit::flush_before_unlock;
use gondwana_node::{Announcement, Arrival, Claim, Construct, DispatchRing, MutexKind, Node, Object};
use gondwana_topology::NodeSet;
use std::ops::Range;

/// Something in shared memory whose address names a lock, a condition or a barrier.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Name(u64);

impl Name {
    /// A new, unused name.
    pub(super) const fn new() -> Self {
        Self(0)
    }
}

fn kind() -> MutexKind {
    MutexKind::Normal
}

fn done(result: Result<(), i32>) {
    if let Err(error) = result {
        crate::report::fatal(&format!("OpenMP: {}", std::io::Error::from_raw_os_error(error)));
    }
}

/// Locks; only the address `lock` is used.
pub(super) fn lock<T>(lock: *const T) {
    if let Some(node) = Node::current() {
        done(node.mutex_lock(lock as usize, kind, None));
    }
}

/// Locks if it is free.
pub(super) fn try_lock<T>(lock: *const T) -> bool {
    Node::current().is_none_or(|node| node.mutex_try_lock(lock as usize, kind).is_ok())
}

/// Unlocks.
pub(super) fn unlock<T>(lock: *const T) {
    if let Some(node) = Node::current() {
        flush_before_unlock(node);
        done(node.mutex_unlock(lock as usize, kind));
    }
}

/// Waits until `threads` threads have arrived.
pub(super) fn meet(barrier: *const Name, threads: u32) {
    if let Some(node) = Node::current().filter(|_| threads > 1) {
        flush_before_unlock(node);
        node.barrier_wait(barrier as usize, threads);
    }
}

/// Arrives where `threads` threads meet; `None` if all have arrived.
pub(super) fn arrive(node: &'static Node, barrier: *const Name, threads: u32) -> Option<Arrival> {
    flush_before_unlock(node);
    node.arrive_at_barrier(barrier as usize, threads)
}

/// Unlocks, waits for a wake-up and locks again.
pub(super) fn wait(changed: *const Name, lock: *const Name) {
    if let Some(node) = Node::current() {
        flush_before_unlock(node);
        done(node.cond_wait(changed as usize, lock as usize, kind, None));
    }
}

/// Wakes all that wait.
pub(super) fn wake(changed: *const Name) {
    if let Some(node) = Node::current() {
        done(node.cond_signal(changed as usize, true));
    }
}

/// Announces something to threads on some nodes, under the name of an address.
pub(super) fn announce<T>(to: NodeSet, name: *const T, number: u64, words: Vec<u64>) {
    if let Some(node) = Node::current() {
        node.announce(to, name as usize, number, words);
    }
}

/// Announces something to threads of the whole run.
pub(super) fn announce_to_all<T>(name: *const T, number: u64, words: Vec<u64>) {
    if let Some(node) = Node::current() {
        node.announce(node.others().collect(), name as usize, number, words);
    }
}

/// Waits for the announcement to a pool after the one with a number.
pub(super) fn await_announcement<T>(pool: *const T, after: u64) -> Announcement {
    let Some(node) = Node::current() else { crate::report::fatal("OpenMP: a thread without a node") };
    node.await_announcement(pool as usize, after)
}

/// A work-sharing construct of a team.
pub(super) fn construct<T>(team: *mut T, number: u64) -> Construct {
    Construct { team: Object(team as u64), number }
}

/// The iterations that the claim gets; all threads of the team are past the constructs up to `settled`.
pub(super) fn claim(construct: Construct, settled: u64, claim: Claim) -> Range<u64> {
    Node::current().map_or(claim.total..claim.total, |node| node.claim_iterations(construct, settled, claim))
}

/// Dispatch buffers for a team, and for how many constructs they have been used; `None` if there are none.
pub(super) fn take_dispatch_ring() -> Option<(DispatchRing, u64)> {
    Node::current()?.take_dispatch_ring()
}

/// A team with dispatch buffers has ended.
pub(super) fn give_back_dispatch_ring(ring: Option<(DispatchRing, u64)>) {
    if let (Some(node), Some((ring, used))) = (Node::current(), ring) {
        node.give_back_dispatch_ring(ring, used);
    }
}

/// The iterations that the claim gets of a construct with a dispatch buffer; `None` if there are no more.
pub(super) fn claim_dispatched(ring: DispatchRing, construct: u64, claim: &Claim) -> Option<Range<u64>> {
    let range = Node::current()?.claim_dispatched(ring, construct, claim);
    (!range.is_empty()).then_some(range)
}

/// Waits for the turn of an iteration's ordered part.
pub(super) fn await_turn(construct: Construct, turn: u64) {
    if let Some(node) = Node::current() {
        flush_before_unlock(node);
        node.await_turn(construct, turn);
    }
}

/// Passes the turn of the ordered parts of some iterations, from the first to before the second.
pub(super) fn pass_turn(construct: Construct, settled: u64, turns: (u64, u64)) {
    if let Some(node) = Node::current() {
        flush_before_unlock(node);
        node.pass_turn(construct, settled, turns);
    }
}

/// Memory that all threads can use.
pub(super) fn allocate(bytes: usize, align: usize) -> *mut u8 {
    let place = crate::alloc::get_aligned(bytes, align.max(gondwana_interpose::MALLOC_ALIGNMENT));
    if place.is_null() {
        crate::report::fatal("OpenMP: out of memory");
    }
    place.cast()
}

/// Shared memory with one value.
pub(super) fn create<T>(value: T) -> *mut T {
    let place = allocate(size_of::<T>(), align_of::<T>()).cast::<T>();
    // SAFETY: the block was just allocated for it.
    unsafe { place.write(value) };
    place
}

/// Frees memory of [`allocate`] or [`create`], which must be unused.
pub(super) fn discard<T>(place: *mut T) {
    // SAFETY: a block from the heap that `free` knows.
    unsafe { crate::alloc::free(place.cast()) };
}
