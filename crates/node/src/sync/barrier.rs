//! Barriers.

use crate::env::waiter_of;
use crate::wait::Poller;
use crate::wait_slots::{WaitSlot, event};
use crate::{Node, Thread};
use gondwana_coherence::SyncPoint;
use gondwana_coherence::sync::Object;
use gondwana_control::Awaited;
use gondwana_topology::NodeId;

/// A thread has arrived at a barrier and does not know that it is passed.
#[derive(Debug)]
pub struct Arrival {
    /// The node for which the thread's report was left.
    left: Option<NodeId>,
    /// The barrier.
    barrier: usize,
}

/// What has ended a wait at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierWait {
    /// All have arrived.
    Passed,
    /// Another thread has woken this one.
    Woken,
    /// The moment is over.
    Neither,
}

impl Node {
    /// `pthread_barrier_wait`: true for the serial thread. The machine releases and acquires, once for all threads
    /// of the node that come together.
    pub fn barrier_wait(&'static self, barrier: usize, count: u32) -> bool {
        self.privately(move || {
            let slot = Thread::current(self).slot;
            let _noted = self.note_wait(slot, Awaited::Barrier, barrier as u64, None);
            let (poller, left) = self.arrive(barrier, count, slot);
            self.wait_at_barrier(poller, slot, event::PASSED, left);
            self.pass(slot)
        })
    }

    /// Arrives at a barrier; `None` if it is passed at once or as soon as the others' messages are here. Otherwise the thread
    /// calls [`Node::await_barrier`] until it is, and may do something else in between, even wait at other barriers, as long as
    /// this one cannot be passed meanwhile.
    pub fn arrive_at_barrier(&'static self, barrier: usize, count: u32) -> Option<Arrival> {
        self.privately(move || {
            let slot = Thread::current(self).slot;
            let (poller, left) = self.arrive(barrier, count, slot);
            if self.glance_at_barrier(poller, slot) {
                self.pass(slot);
                return None;
            }
            Some(Arrival { left, barrier })
        })
    }

    /// Waits until all threads have arrived, until the thread is [woken](crate::Waker), or, `briefly`, for a moment.
    pub fn await_barrier(&'static self, arrival: &mut Arrival, briefly: bool) -> BarrierWait {
        let (left, barrier) = (arrival.left.take(), arrival.barrier);
        self.privately(move || {
            let slot = Thread::current(self).slot;
            // One that waits briefly has something to do besides.
            let _noted = (!briefly).then(|| self.note_wait(slot, Awaited::Barrier, barrier as u64, None));
            let mask = event::PASSED | event::WOKEN;
            if self.waiting.slots.seen(slot, mask) == 0 {
                if briefly {
                    self.wait_for_a_moment(slot, mask, left);
                } else {
                    self.wait_at_barrier(self.poll(), slot, mask, left);
                }
            }
            match self.waiting.slots.seen(slot, mask) {
                0 => BarrierWait::Neither,
                event::WOKEN => BarrierWait::Woken,
                _ => {
                    self.pass(slot);
                    BarrierWait::Passed
                }
            }
        })
    }

    /// Arrives; returns the declaration that the thread polls, and the node for which its report was left.
    fn arrive(&'static self, barrier: usize, count: u32, slot: WaitSlot) -> (Option<Poller>, Option<NodeId>) {
        let object = Object(barrier as u64);
        let freed = self.begin_release();
        if !freed.is_empty() {
            // They may be handed out again only when what was written to them before is released.
            let peer = self.layout.only_peer();
            self.complete_release(SyncPoint { object: Some(object), peer, ..SyncPoint::default() }, freed);
        }
        // Declared first: the last to arrive is answered at once.
        let poller = self.poll();
        if poller.is_some() {
            // Who was here before may have left word.
            self.look();
        }
        let left =
            self.core().with_barriers(|barriers, env| barriers.arrive(object, count, waiter_of(slot), env));
        (poller, left)
    }

    /// The thread has passed a barrier: it may be at another one, at which it had arrived before. True for the serial thread.
    fn pass(&'static self, slot: WaitSlot) -> bool {
        self.waiting.slots.arm(slot, event::PASSED);
        self.waiting.slots.result(slot) != 0
    }
}
