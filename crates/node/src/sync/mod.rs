//! Synchronisation of the program's threads, over the machines of `coherence::sync`.

mod barrier;
mod common_mutex;
mod cond;
pub(crate) mod dispatch;
mod futex;
mod join;
mod key;
mod mutex;
mod once;
mod request;
mod rwlock;
mod semaphore;
mod semaphores;
mod signals;
mod work_sharing;

pub(crate) use semaphores::encoded;

pub use barrier::{Arrival, BarrierWait};
pub use gondwana_coherence::sync::Kind as MutexKind;
pub use join::JoinWait;
pub use rwlock::RwOperation;

use crate::wait_slots::{WaitSlot, event};
use crate::wire::Wire;
use crate::{Node, Thread};
pub(crate) use common_mutex::CommonMutexes;
use dispatch::DispatchRings;
use gondwana_coherence::sync::{LockTable, Object, RestingTable, Thread as ThreadId};
use gondwana_coherence::{Outcome, SyncPoint};
use gondwana_memory::{CommonWords, LoggedReads};
use gondwana_topology::NodeId;
use rwlock::MoreLocks;
use signals::Signals;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// What this node knows of the program's synchronisation objects outside of its lock.
pub(crate) struct SyncObjects {
    /// The mutexes whose tokens rest here.
    lock_table: Arc<LockTable>,
    /// The conditions, semaphores and readers-writer locks that this node has or had.
    resting: Arc<RestingTable>,
    /// Readers-writer locks of threads that hold many.
    more_locks: MoreLocks,
    /// `pthread_once` controls that this node knows to be done, with their generation.
    onces: RwLock<HashMap<usize, u32>>,
    /// Initialisations of semaphores by this node so far.
    stamps: AtomicU64,
    /// Signals given by this node.
    signals: Signals,
    /// A release has nothing to do, unless there are [reads](LoggedReads) that it has not seen.
    pub(crate) released: AtomicBool,
    /// An acquire has nothing to do, unless notices are posted to this node.
    pub(crate) acquired: AtomicBool,
    /// No node can post notices to this one.
    has_no_posts: bool,
    /// `None` if no node reads the memory of this one.
    unseen_reads: Option<LoggedReads>,
    /// How many threads of all nodes wait at futexes that the runtime manages, if pages may become common.
    queued_futexes: Option<&'static AtomicU64>,
    /// The mutexes that are common, if any may be.
    pub(crate) common_mutexes: Option<CommonMutexes>,
    /// Where threads claim the iterations of work-sharing constructs, if nodes have memory in common.
    dispatch_rings: Option<DispatchRings>,
}

impl SyncObjects {
    /// Of a node among `nodes`, which may have words in common.
    pub(crate) fn new(
        lock_table: Arc<LockTable>,
        resting: Arc<RestingTable>,
        words: Option<CommonWords>,
        unseen_reads: Option<LoggedReads>,
        has_no_posts: bool,
        nodes: u16,
    ) -> Self {
        let signals = Signals::new(nodes);
        let (more_locks, onces, stamps) = (MoreLocks::default(), RwLock::default(), AtomicU64::new(0));
        let queued_futexes = words.as_ref().map(|words| words.alone(0));
        let rest = words.as_ref().map(|words| words.rest().split_at(DispatchRings::WORDS));
        let dispatch_rings = rest.map(|(words, _)| DispatchRings::new(words));
        let common_mutexes = rest.map(|(_, words)| CommonMutexes::new(words));
        let (released, acquired) = (AtomicBool::new(false), AtomicBool::new(false));
        Self {
            lock_table,
            resting,
            more_locks,
            onces,
            stamps,
            signals,
            released,
            acquired,
            has_no_posts,
            unseen_reads,
            queued_futexes,
            common_mutexes,
            dispatch_rings,
        }
    }

    /// Mutexes that threads of this node hold, at most `most`, each with its holder.
    pub(crate) fn held_mutexes(&self, me: NodeId, most: usize) -> Vec<(u64, u64)> {
        let common = self.lock_table.common().filter_map(|mutex| {
            let place = self.common_mutexes.as_ref()?.get(mutex)?;
            Some((mutex, place.holder_on(me)?))
        });
        let held = self.lock_table.held().chain(common).take(most);
        held.map(|(mutex, thread)| (mutex.0, thread.0)).collect()
    }
}

impl Node {
    /// Calls a function on memory that no fault can take away: the caller's own stack may be shared, and a fault
    /// on it in the midst of the machines could not be resolved. So the function borrows nothing from there either.
    pub(crate) fn privately<R>(&self, call: impl FnOnce() -> R + 'static) -> R {
        let mut call = Some(call);
        let mut result = None;
        (self.hooks.on_private_stack)(&mut || result = call.take().map(|call| call()));
        result.expect("the hook calls what it is given")
    }

    /// The calling thread's number, and where it waits.
    #[inline]
    fn thread_number(&'static self) -> (ThreadId, WaitSlot) {
        let thread = Thread::current(self);
        (ThreadId(thread.id), thread.slot)
    }

    /// Makes what this node wrote visible to threads that learn of it later, from messages that this node sends. They are about
    /// `object`, if it is one.
    pub fn release(&'static self, object: Option<Object>) {
        let peer = self.layout.only_peer();
        self.release_at(SyncPoint { object, peer, ..SyncPoint::default() });
    }

    /// What this node wrote is visible to all that acquire later, and it sees what others had released.
    pub fn fence(&'static self) {
        self.release_at(SyncPoint::default());
        self.acquire(None);
    }

    /// Makes what this node wrote visible to threads that learn of it later by memory that nodes have in common, and waits for that.
    fn release_written(&'static self, object: Option<Object>) {
        if self.has_released() {
            return;
        }
        self.privately(move || self.complete_release(SyncPoint { object, ..SyncPoint::default() }, vec![]));
    }

    /// True if all that the calling thread has written is released.
    fn has_released(&'static self) -> bool {
        let is_released = self.sync.released.load(Ordering::Acquire);
        is_released && !self.sync.unseen_reads.is_some_and(|reads| reads.any())
    }

    /// The same for a message to one node only.
    pub(crate) fn release_to(&'static self, peer: NodeId) {
        self.release_at(SyncPoint { object: None, peer: Some(peer), ..SyncPoint::default() });
    }

    /// Makes what this node wrote visible, and waits until the nodes concerned have it.
    pub fn release_and_wait(&'static self) {
        self.release_at(SyncPoint::default());
    }

    fn release_at(&'static self, at: SyncPoint) {
        self.privately(move || {
            let freed = self.begin_release();
            self.complete_release(at, freed);
        })
    }

    /// Writes out what standard output holds; returns the blocks of other nodes' heaps that were freed here, by
    /// owner.
    fn begin_release(&'static self) -> Vec<(NodeId, Vec<u64>)> {
        let freed = self.heap.freed_elsewhere.take();
        (self.hooks.flush_output)();
        freed
    }

    fn complete_release(&'static self, at: SyncPoint, freed: Vec<(NodeId, Vec<u64>)>) {
        let slot = Thread::current(self).slot;
        self.waiting.slots.arm(slot, event::COHERENT);
        let outcome = self.core().release(at, slot);
        if outcome == Outcome::Wait {
            self.wait(slot, event::COHERENT, None);
        }
        for (owner, addresses) in freed {
            self.core().publish(owner, &Wire::Free(addresses));
        }
    }

    /// Sees what others released, by a message about `object` if it is one.
    pub fn acquire(&'static self, object: Option<Object>) {
        // Nobody is at the machines, and they know of nothing. What this thread has learned of was acknowledged by them before.
        if self.sync.has_no_posts && self.sync.acquired.load(Ordering::Acquire) {
            return;
        }
        self.privately(move || {
            self.core().acquire(SyncPoint { object, ..SyncPoint::default() });
        })
    }
}
