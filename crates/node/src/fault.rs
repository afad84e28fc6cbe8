//! Faults of the program on shared memory.

use crate::clock::{Activity, Scope};
use crate::patience::Patience;
use crate::slots::{Slot, event};
use crate::streams::Ahead;
use crate::{Node, Thread};
use gondwana_coherence::{Access, Outcome, Page};
use gondwana_fabric::Polling;
use gondwana_memory::PAGE_SIZE;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Most pages that one fault brings along.
const MOST_AHEAD: u32 = 127;

/// Pages of a stack that one fault brings in below the one that was touched: frames grow downwards.
const STACK_AHEAD: u32 = 15;

/// How long the service thread sleeps at most while it waits: another thread may receive its answer.
const SERVICE_WAIT: Duration = Duration::from_micros(100);

/// How often a thread that polls looks for messages between two looks at the clock.
const LOOKS: u32 = 16;

impl Node {
    /// Resolves a fault at a shared address. False if the access is not ours to allow: then it is the program's
    /// own mistake.
    pub fn fault(&'static self, address: usize, write: bool, signal: i32) -> bool {
        let Some(number) = self.geometry.page_of(address) else { return false };
        let page = Page(number);
        let access = if write { Access::Write } else { Access::Read };
        if signal == libc::SIGSEGV && self.core().ports.pages.is_forbidden(number, needed(access)) {
            // The program's own protection (a guard page) forbids what the protocol allows.
            return false;
        }
        let thread = Thread::current(self);
        if thread.stack.contains(&address) {
            let lowest = (address - thread.stack.start) / PAGE_SIZE;
            let below = STACK_AHEAD.min(lowest as u32);
            self.resolve(Page(number - below), Access::Write, Ahead::next(below));
        }
        let ahead = match thread.streams.try_borrow_mut() {
            Ok(mut streams) => streams.ahead(number, MOST_AHEAD),
            Err(_) => Ahead::NOTHING,
        };
        self.resolve(page, access, ahead);
        true
    }

    /// Brings a page in for the calling thread, with those after it where that is cheap.
    pub(crate) fn resolve(&'static self, page: Page, access: Access, ahead: Ahead) {
        let slot = Thread::current(self).slot;
        self.slots.arm(slot, event::COHERENT);
        // Declared before the request leaves: the answer is this thread's to receive, however soon it comes.
        let polling = self.poll();
        let mut core = self.core();
        if permits(core.ports.pages.access(page.0), access) {
            // Somebody else resolved it, or the kernel dropped the mapping by itself.
            if let Err(error) = core.ports.pages.refresh(page.0) {
                crate::fatal(&error.to_string());
            }
            return;
        }
        let outcome = core.fault(page, access, ahead, slot);
        drop(core);
        if outcome == Outcome::Wait {
            self.wait_polling(polling, slot, event::COHERENT, None);
        }
    }

    /// Waits for an event of `mask`, receiving messages meanwhile; 0 if the time is over first.
    pub(crate) fn wait(&'static self, slot: Slot, mask: u32, until: Option<Instant>) -> u32 {
        match self.slots.seen(slot, mask) {
            0 => self.wait_polling(self.poll(), slot, mask, until),
            seen => seen,
        }
    }

    /// Declares that this thread is going to poll, where nodes poll at all.
    fn poll(&'static self) -> Option<Polling<'static>> {
        (!self.patience.is_none() && !Thread::is_service()).then(|| Polling::begin(self.fabric.as_ref()))
    }

    fn wait_polling(
        &'static self,
        polling: Option<Polling<'static>>,
        slot: Slot,
        mask: u32,
        until: Option<Instant>,
    ) -> u32 {
        if Thread::is_service() {
            // Starting a thread, the C library may touch a variable of its own that the program has a copy of.
            return self.receive_until(slot, mask);
        }
        let _time = Scope::enter(Activity::Waiting);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let seen = match polling {
            Some(polling) => self.spin_for(slot, mask, polling),
            None => 0,
        };
        let seen = if seen == 0 { self.slots.sleep(slot, mask, until) } else { seen };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        seen
    }

    /// The service thread's own wait: nobody else would receive the answer.
    fn receive_until(&'static self, slot: Slot, mask: u32) -> u32 {
        loop {
            self.receive();
            let seen = self.slots.seen(slot, mask);
            if seen != 0 {
                return seen;
            }
            self.fabric.wait(Some(SERVICE_WAIT));
        }
    }

    /// Receives messages until an event of `mask`, or until none has come for a while: then 0. Polling ends with it:
    /// a thread that sleeps must not be taken for one that receives.
    fn spin_for(&'static self, slot: Slot, mask: u32, _polling: Polling<'static>) -> u32 {
        self.polling.fetch_add(1, Ordering::Relaxed);
        // A handler of the program that waited meanwhile would keep everybody else from receiving.
        Thread::in_runtime(|| self.receive_while_idle(&self.patience, || self.slots.seen(slot, mask) == 0));
        self.polling.fetch_sub(1, Ordering::Relaxed);
        self.slots.seen(slot, mask)
    }

    /// Receives messages while `going`, as long as the node has a processor to spare and the next message is not
    /// awaited in vain.
    pub(crate) fn receive_while_idle(&'static self, patience: &Patience, going: impl Fn() -> bool) {
        let most = patience.now();
        // The clock costs as much as a look at the rings: a quick answer does without.
        let mut looks = 0_u32;
        let mut last = None;
        while going() && self.has_idle_processor() {
            if self.receive() > 0 {
                patience.learn(true);
                (looks, last) = (0, None);
                continue;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) && last.get_or_insert_with(Instant::now).elapsed() >= most {
                patience.learn(false);
                break;
            }
            std::hint::spin_loop();
        }
    }

    /// True if fewer threads of this node run than it has processors.
    fn has_idle_processor(&self) -> bool {
        let running = self.live.load(Ordering::Relaxed).saturating_sub(self.waiting.load(Ordering::Relaxed));
        running < u32::from(self.boot.processors)
    }
}

fn permits(now: gondwana_memory::Access, access: Access) -> bool {
    now >= needed(access)
}

fn needed(access: Access) -> gondwana_memory::Access {
    match access {
        Access::None => gondwana_memory::Access::None,
        Access::Read => gondwana_memory::Access::Read,
        Access::Write => gondwana_memory::Access::Write,
    }
}
