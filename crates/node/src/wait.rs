//! Waiting for what other threads and nodes have to do first.

use crate::adaptive_spin::AdaptiveSpin;
use crate::clock::{Activity, Scope};
use crate::thread::Uninterrupted;
use crate::wait_slots::{WaitSlot, event};
use crate::{Node, Thread};
use gondwana_fabric::Polling;
use gondwana_topology::NodeId;
use std::time::{Duration, Instant};

/// How long the service thread sleeps at most while it waits: another thread may receive its answer.
const SERVICE_WAIT: Duration = Duration::from_micros(100);

/// How long an answer is awaited before a node is interrupted for it: some messages, and less than interrupting it costs both.
const MOMENT: Duration = Duration::from_micros(20);

/// How long a thread may wait for a mutex, or for a call that another node makes, and count as one that will go on: some round trips.
const SOON: Duration = Duration::from_micros(300);

/// How often a thread that polls looks for messages before it counts as one that waits.
const FIRST_LOOKS: u32 = 32;

/// How often a thread that polls looks for messages between two looks at the clock.
const LOOKS: u32 = 64;

/// After how many looks for messages a thread that polls lets others have its processor, if they want it: the one that would answer may
/// wait for it. It loses a third of a microsecond to that, one time in twenty.
const YIELD: u32 = 256;

/// The calling thread's declaration that it receives messages. Handlers of the program's signals wait for its end: one
/// that waited for something itself would keep everybody else from receiving.
pub(crate) struct Poller {
    _polling: Polling<'static>,
    _uninterrupted: Uninterrupted,
}

/// The calling thread lets time go by as long as this value lives.
pub struct Pause(&'static Node);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.threads.pauses(false);
    }
}

impl Node {
    /// Waits for an event of `mask`, receiving messages meanwhile; 0 if the time is over first.
    pub(crate) fn wait(&'static self, slot: WaitSlot, mask: u32, until: Option<Instant>) -> u32 {
        let seen = self.waiting.slots.seen(slot, mask);
        if seen != 0 {
            return seen;
        }
        if mask & event::LOCKED == 0 {
            self.let_go_of_tokens();
        }
        self.wait_polling(self.poll(), slot, mask, until)
    }

    /// [`Node::wait`] for what most often comes soon: where nodes take turns with pages, what is kept for this thread stays for a moment.
    pub(crate) fn wait_shortly(&'static self, slot: WaitSlot, mask: u32, until: Option<Instant>) -> u32 {
        let seen = self.waiting.slots.seen(slot, mask);
        if seen != 0 || !self.takes_turns() {
            return self.wait(slot, mask, until);
        }
        let soon = Instant::now() + SOON;
        if until.is_some_and(|until| until < soon) {
            return self.wait(slot, mask, until);
        }
        self.threads.goes_on_soon(true);
        let seen = self.wait_polling(self.poll(), slot, mask, Some(soon));
        self.threads.goes_on_soon(false);
        if seen != 0 {
            return seen;
        }
        self.let_go_of_tokens();
        self.wait(slot, mask, until)
    }

    /// True if nodes take turns with pages that they fight for.
    fn takes_turns(&self) -> bool {
        self.has_owners() && self.boot.common_after.is_none()
    }

    /// Declares that this thread is going to poll, where nodes poll at all.
    pub(crate) fn poll(&'static self) -> Option<Poller> {
        (self.waiting.polls() && self.threads.fit() && !Thread::is_service()).then(|| {
            let uninterrupted = Uninterrupted::begin();
            Poller { _polling: Polling::begin(self.fabric.as_ref()), _uninterrupted: uninterrupted }
        })
    }

    /// [`Node::wait`] by a thread that has declared that it polls.
    pub(crate) fn wait_polling(
        &'static self,
        poller: Option<Poller>,
        slot: WaitSlot,
        mask: u32,
        until: Option<Instant>,
    ) -> u32 {
        self.wait_prompting(poller, slot, (mask, until), None)
    }

    /// [`Node::wait`] at a barrier, by a thread that has declared that it polls. What it did there may have been left for a node:
    /// that hears of it if it does not look in a moment.
    pub(crate) fn wait_at_barrier(
        &'static self,
        poller: Option<Poller>,
        slot: WaitSlot,
        mask: u32,
        left: Option<NodeId>,
    ) {
        if self.waiting.slots.seen(slot, mask) == 0 {
            self.let_go_of_tokens();
            self.wait_prompting(poller, slot, (mask, None), left);
        }
    }

    /// True if a barrier is passed as soon as a message is here that is on its way already.
    pub(crate) fn glance_at_barrier(&'static self, poller: Option<Poller>, slot: WaitSlot) -> bool {
        if self.waiting.slots.seen(slot, event::PASSED) != 0 {
            return true;
        }
        let _time = Scope::enter(Activity::Waiting);
        poller.is_some() && self.has_idle_processor(1) && self.look_for(slot, event::PASSED)
    }

    /// Waits for as long as it does no harm that others do not know of it. What was left for a node, it hears of afterwards.
    pub(crate) fn wait_for_a_moment(&'static self, slot: WaitSlot, mask: u32, left: Option<NodeId>) {
        let _time = Scope::enter(Activity::Waiting);
        let nothing = || self.waiting.slots.seen(slot, mask) == 0;
        if let Some(_poller) = self.poll() {
            self.threads.begin_wait();
            self.receive_for(MOMENT, nothing, |_| {});
            self.threads.end_wait();
        }
        if let Some(node) = left.filter(|_| nothing()) {
            self.fabric.prompt(node);
        }
    }

    fn wait_prompting(
        &'static self,
        poller: Option<Poller>,
        slot: WaitSlot,
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
            return self.waiting.slots.seen(slot, mask);
        }
        self.threads.begin_wait();
        self.let_go_if_idle();
        if let Some(node) = left {
            if poller.is_some() {
                self.receive_for(MOMENT, || self.waiting.slots.seen(slot, mask) == 0, |_| {});
            }
            if self.waiting.slots.seen(slot, mask) == 0 {
                self.fabric.prompt(node);
            }
        }
        let seen = poller.map_or(0, |poller| self.spin_for(slot, mask, poller));
        let seen = if seen == 0 { self.sleep(slot, mask, until) } else { seen };
        self.threads.end_wait();
        seen
    }

    /// The calling thread, one of the program's, leaves its processor to others, or sleeps for a time, as long as the value lives. Such
    /// threads look again and again for what another one does, and nothing needs to stay here for them.
    pub fn pause(&'static self) -> Pause {
        self.threads.pauses(true);
        if self.service.is_wanted() {
            self.undisturbed(|| self.let_go_if_idle());
        }
        Pause(self)
    }

    /// Receives messages for the time of one that is on the way already; true if an event of `mask` has come with it. So
    /// short a wait is not worth telling anybody of.
    fn look_for(&'static self, slot: WaitSlot, mask: u32) -> bool {
        (0..FIRST_LOOKS).any(|_| {
            if self.receive() == 0 {
                std::hint::spin_loop();
            }
            self.waiting.slots.seen(slot, mask) != 0
        })
    }

    fn sleep(&'static self, slot: WaitSlot, mask: u32, until: Option<Instant>) -> u32 {
        if mask & event::PASSED == 0 {
            return self.threads.asleep(|| self.waiting.slots.sleep(slot, mask, until));
        }
        // At a barrier it no longer looks by itself for what was left for threads on their way there.
        self.fabric.begin_waiting();
        let seen = self.threads.asleep(|| self.waiting.slots.sleep(slot, mask, until));
        self.fabric.end_waiting();
        seen
    }

    /// The service thread's own wait: nobody else would receive the answer.
    fn receive_until(&'static self, slot: WaitSlot, mask: u32) -> u32 {
        loop {
            self.receive();
            let seen = self.waiting.slots.seen(slot, mask);
            if seen != 0 {
                // Interruptions that ended a wait here may have been about what the service thread does otherwise.
                self.fabric.interrupt();
                return seen;
            }
            self.fabric.wait(Some(SERVICE_WAIT));
            // Whoever has the awaited page may be waiting for one that is kept here.
            if self.service.is_wanted() {
                self.let_go();
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
    fn spin_for(&'static self, slot: WaitSlot, mask: u32, _poller: Poller) -> u32 {
        self.receive_while_idle(self.waiting.spin_for(mask), || self.waiting.slots.seen(slot, mask) == 0);
        self.waiting.slots.seen(slot, mask)
    }

    /// Receives messages while `going`, as long as the node has a processor to spare and the next message is not
    /// awaited in vain.
    pub(crate) fn receive_while_idle(&'static self, spin: &AdaptiveSpin, going: impl Fn() -> bool) {
        self.receive_for(spin.now(), going, |paid| spin.learn(paid));
    }

    /// Receives messages while `going`, as long as the node has a processor to spare and the next message comes within a
    /// time; `learn` gets whether it did.
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
            if looks.is_multiple_of(YIELD) {
                // SAFETY: touches no memory.
                unsafe { gondwana_sys::syscall!(libc::SYS_sched_yield) };
            }
            std::hint::spin_loop();
        }
    }

    /// True if this node has a processor for a thread that polls, if `more` wait than count as such.
    fn has_idle_processor(&self, more: u32) -> bool {
        self.threads.leave_idle_processor(more, self.waiting.slots.waking())
    }
}
