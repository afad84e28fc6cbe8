//! Waiting for what other threads and nodes have to do first.

use crate::clock::{Activity, Scope};
use crate::patience::Patience;
use crate::slots::{Slot, event};
use crate::thread::Uninterrupted;
use crate::{Node, Thread};
use gondwana_fabric::Polling;
use gondwana_topology::NodeId;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the service thread sleeps at most while it waits: another thread may receive its answer.
const SERVICE_WAIT: Duration = Duration::from_micros(100);

/// How long an answer is awaited before a node is interrupted for it: some messages, and less than interrupting it costs both.
const MOMENT: Duration = Duration::from_micros(20);

/// How often a thread that polls looks for messages before it counts as one that waits.
const FIRST_LOOKS: u32 = 32;

/// How often a thread that polls looks for messages between two looks at the clock.
const LOOKS: u32 = 64;

/// The calling thread's declaration that it receives messages. Handlers of the program's signals wait for its end: one
/// that waited for something itself would keep everybody else from receiving.
pub(crate) struct Poller {
    _polling: Polling<'static>,
    _uninterrupted: Uninterrupted,
}

impl Node {
    /// Waits for an event of `mask`, receiving messages meanwhile; 0 if the time is over first.
    pub(crate) fn wait(&'static self, slot: Slot, mask: u32, until: Option<Instant>) -> u32 {
        match self.slots.seen(slot, mask) {
            0 => self.wait_polling(self.poll(), slot, mask, until),
            seen => seen,
        }
    }

    /// Declares that this thread is going to poll, where nodes poll at all.
    pub(crate) fn poll(&'static self) -> Option<Poller> {
        (!self.patience.is_none() && !Thread::is_service()).then(|| {
            let uninterrupted = Uninterrupted::begin();
            Poller { _polling: Polling::begin(self.fabric.as_ref()), _uninterrupted: uninterrupted }
        })
    }

    /// [`Node::wait`] by a thread that has declared that it polls.
    pub(crate) fn wait_polling(
        &'static self,
        poller: Option<Poller>,
        slot: Slot,
        mask: u32,
        until: Option<Instant>,
    ) -> u32 {
        self.wait_prompting(poller, slot, (mask, until), None)
    }

    /// [`Node::wait`] at a barrier, by a thread that has declared that it polls. What it did there may have been left for a node:
    /// that hears of it if it does not look in a moment.
    pub(crate) fn wait_at_barrier(&'static self, poller: Option<Poller>, slot: Slot, left: Option<NodeId>) {
        if self.slots.seen(slot, event::PASSED) == 0 {
            self.wait_prompting(poller, slot, (event::PASSED, None), left);
        }
    }

    fn wait_prompting(
        &'static self,
        poller: Option<Poller>,
        slot: Slot,
        (mask, until): (u32, Option<Instant>),
        left: Option<NodeId>,
    ) -> u32 {
        if Thread::is_handling_message() {
            crate::fatal(
                "a message cannot be handled without another one: this is an error of gondwana's own",
            );
        }
        if Thread::is_service() {
            // Starting a thread, the C library may touch a variable of its own that the program has a copy of.
            return self.receive_until(slot, mask);
        }
        let _time = Scope::enter(Activity::Waiting);
        if poller.is_some() && self.has_idle_processor(1) && self.look_for(slot, mask) {
            return self.slots.seen(slot, mask);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Some(node) = left {
            if poller.is_some() {
                self.receive_for(MOMENT, || self.slots.seen(slot, mask) == 0, |_| {});
            }
            if self.slots.seen(slot, mask) == 0 {
                self.fabric.prompt(node);
            }
        }
        let seen = poller.map_or(0, |poller| self.spin_for(slot, mask, poller));
        let seen = if seen == 0 { self.sleep(slot, mask, until) } else { seen };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        seen
    }

    /// Receives messages for the time of one that is on the way already; true if an event of `mask` has come with it. So
    /// short a wait is not worth telling anybody of.
    fn look_for(&'static self, slot: Slot, mask: u32) -> bool {
        (0..FIRST_LOOKS).any(|_| {
            if self.receive() == 0 {
                std::hint::spin_loop();
            }
            self.slots.seen(slot, mask) != 0
        })
    }

    fn sleep(&'static self, slot: Slot, mask: u32, until: Option<Instant>) -> u32 {
        if mask != event::PASSED {
            return self.slots.sleep(slot, mask, until);
        }
        // At a barrier it no longer looks by itself for what was left for threads on their way there.
        self.fabric.begin_waiting();
        let seen = self.slots.sleep(slot, mask, until);
        self.fabric.end_waiting();
        seen
    }

    /// The service thread's own wait: nobody else would receive the answer.
    fn receive_until(&'static self, slot: Slot, mask: u32) -> u32 {
        loop {
            self.receive();
            let seen = self.slots.seen(slot, mask);
            if seen != 0 {
                // Interruptions that ended a wait here may have been about what the service thread does otherwise.
                self.fabric.interrupt();
                return seen;
            }
            self.fabric.wait(Some(SERVICE_WAIT));
            // Whoever has the awaited page may be waiting for one that is kept here.
            if self.holding.swap(false, Ordering::AcqRel) {
                self.core().let_go();
            }
        }
    }

    /// Receives what is known to have arrived, by a thread that has declared that it polls.
    pub(crate) fn look(&'static self) {
        if self.fabric.has_arrived() {
            self.receive();
        }
    }

    /// Receives messages until an event of `mask`, or until none has come for a while: then 0. Polling ends with it:
    /// a thread that sleeps must not be taken for one that receives.
    fn spin_for(&'static self, slot: Slot, mask: u32, _poller: Poller) -> u32 {
        let patience = if mask == event::COHERENT { &self.page_patience } else { &self.patience };
        self.receive_while_idle(patience, || self.slots.seen(slot, mask) == 0);
        self.slots.seen(slot, mask)
    }

    /// Receives messages while `going`, as long as the node has a processor to spare and the next message is not
    /// awaited in vain.
    pub(crate) fn receive_while_idle(&'static self, patience: &Patience, going: impl Fn() -> bool) {
        self.receive_for(patience.now(), going, |paid| patience.learn(paid));
    }

    /// Receives messages while `going`, as long as the node has a processor to spare and the next message comes within a
    /// time; `learn` hears whether it did.
    fn receive_for(&'static self, most: Duration, going: impl Fn() -> bool, learn: impl Fn(bool)) {
        // The clock costs as much as several looks at the rings: a quick answer does without.
        let mut looks = 0_u32;
        let mut last = None;
        while going() && self.has_idle_processor(0) {
            if self.receive() > 0 {
                learn(true);
                (looks, last) = (0, None);
                continue;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) && last.get_or_insert_with(Instant::now).elapsed() >= most {
                learn(false);
                break;
            }
            std::hint::spin_loop();
        }
    }

    /// True if fewer threads of this node run than it has processors, if `more` wait than count as such. Those that are about
    /// to run count: who polls might be what keeps them from it.
    fn has_idle_processor(&self, more: u32) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed) + more;
        let waiting = waiting.saturating_sub(self.slots.waking());
        let running = self.live.load(Ordering::Relaxed).saturating_sub(waiting);
        running < u32::from(self.boot.processors)
    }
}
