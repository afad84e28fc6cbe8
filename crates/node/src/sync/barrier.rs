//! Barriers.

use crate::env::waiter_of;
use crate::wait_slots::event;
use crate::{Node, Thread};
use gondwana_coherence::SyncPoint;
use gondwana_coherence::sync::Object;

impl Node {
    /// `pthread_barrier_wait`: true for the serial thread. The machine releases and acquires, once for all threads
    /// of the node that come together.
    pub fn barrier_wait(&'static self, barrier: usize, count: u32) -> bool {
        self.privately(move || {
            let object = Object(barrier as u64);
            let freed = self.begin_release();
            if !freed.is_empty() {
                // They may be handed out again only when what was written to them before is released.
                let peer = self.layout.only_peer();
                self.complete_release(
                    SyncPoint { object: Some(object), peer, ..SyncPoint::default() },
                    freed,
                );
            }
            let slot = Thread::current(self).slot;
            self.waiting.slots.arm(slot, event::PASSED);
            // Declared first: the last to arrive is answered at once.
            let poller = self.poll();
            if poller.is_some() {
                // Who was here before may have left word.
                self.look();
            }
            let left = self
                .core()
                .with_barriers(|barriers, env| barriers.arrive(object, count, waiter_of(slot), env));
            self.wait_at_barrier(poller, slot, left);
            self.waiting.slots.result(slot) != 0
        })
    }
}
