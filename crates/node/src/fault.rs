//! Faults of the program on shared memory.

use crate::slots::{Slot, event};
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

impl Node {
    /// Resolves a fault at a shared address. False if the access is not ours to allow: then it is the program's
    /// own mistake.
    pub fn fault(&'static self, address: usize, write: bool, signal: i32) -> bool {
        let Some(number) = self.geometry.page_of(address) else { return false };
        let page = Page(number);
        let access = if write { Access::Write } else { Access::Read };
        if signal == libc::SIGSEGV && permits(self.core().ports.pages.access(number), access) {
            // The program's own protection (a guard page) forbids what the protocol allows.
            return false;
        }
        let thread = Thread::current(self);
        if thread.stack.contains(&address) {
            let lowest = (address - thread.stack.start) / PAGE_SIZE;
            let below = STACK_AHEAD.min(lowest as u32);
            self.resolve(Page(number - below), Access::Write, below);
        }
        let ahead = match thread.streams.try_borrow_mut() {
            Ok(mut streams) => streams.ahead(number, MOST_AHEAD),
            Err(_) => 0,
        };
        self.resolve(page, access, ahead);
        true
    }

    /// Brings a page in for the calling thread, with those after it where that is cheap.
    pub(crate) fn resolve(&'static self, page: Page, access: Access, ahead: u32) {
        let slot = Thread::current(self).slot;
        self.slots.arm(slot, event::COHERENT);
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
            self.wait(slot, event::COHERENT, None);
        }
    }

    /// Waits for an event of `mask`, receiving messages meanwhile; 0 if the time is over first.
    pub(crate) fn wait(&'static self, slot: Slot, mask: u32, until: Option<Instant>) -> u32 {
        let seen = self.slots.seen(slot, mask);
        if seen != 0 {
            return seen;
        }
        if Thread::is_service() {
            // Starting a thread, the C library may touch a variable of its own that the program has a copy of.
            return self.receive_until(slot, mask);
        }
        let start = Instant::now();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let seen = self.spin_for(slot, mask, start).unwrap_or_else(|| self.slots.sleep(slot, mask, until));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        crate::stats::add_since(&self.times.waiting, start);
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

    /// Receives messages for a short time, where each node has a processor to do so.
    fn spin_for(&'static self, slot: Slot, mask: u32, start: Instant) -> Option<u32> {
        if self.spin.is_zero() || !self.has_idle_processor() {
            return None;
        }
        let _polling = Polling::begin(self.fabric.as_ref());
        let mut seen = 0;
        while seen == 0 && start.elapsed() < self.spin {
            if self.receive() == 0 {
                std::hint::spin_loop();
            }
            seen = self.slots.seen(slot, mask);
        }
        (seen != 0).then_some(seen)
    }

    /// True if fewer threads of this node run than it has processors.
    fn has_idle_processor(&self) -> bool {
        let running = self.live.load(Ordering::Relaxed).saturating_sub(self.waiting.load(Ordering::Relaxed));
        running < u32::from(self.boot.processors)
    }
}

fn permits(now: gondwana_memory::Access, access: Access) -> bool {
    match access {
        Access::None => true,
        Access::Read => now >= gondwana_memory::Access::Read,
        Access::Write => now == gondwana_memory::Access::Write,
    }
}
