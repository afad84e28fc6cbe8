//! Faults of the program on shared memory.

use crate::slots::Slot;
use crate::{Node, Thread};
use gondwana_coherence::{Access, Page};
use gondwana_fabric::Polling;
use gondwana_memory::PAGE_SIZE;
use std::time::Instant;

/// Most pages that one fault brings along.
const MOST_AHEAD: u32 = 127;

/// Pages of a stack that one fault brings in below the one that was touched: frames grow downwards.
const STACK_AHEAD: u32 = 15;

impl Node {
    /// Resolves a fault at a shared address. False if the access is not ours to allow: then it is the program's
    /// own mistake.
    pub fn fault(&'static self, address: usize, write: bool, signal: i32) -> bool {
        let Some(number) = self.geometry.page_of(address) else { return false };
        let page = Page(number);
        let access = if write { Access::Write } else { Access::Read };
        if signal == libc::SIGSEGV && self.permits(page, access) {
            // The program's own protection (a guard page) forbids what the protocol allows.
            return false;
        }
        let thread = Thread::current(self);
        if thread.stack.contains(&address) {
            let lowest = (address - thread.stack.start) / PAGE_SIZE;
            let below = STACK_AHEAD.min(lowest as u32);
            if below > 0 {
                self.resolve(Page(number - below), Access::Write, below);
                if self.permits(page, access) {
                    return true;
                }
            }
        }
        let ahead = match thread.streams.try_borrow_mut() {
            Ok(mut streams) => streams.ahead(number, MOST_AHEAD),
            Err(_) => 0,
        };
        if self.permits(page, access) {
            // Somebody else resolved it, or the kernel dropped the mapping by itself.
            if let Err(error) = self.core().ports.pages.refresh(number) {
                crate::fatal(&error.to_string());
            }
            return true;
        }
        self.resolve(page, access, ahead);
        true
    }

    fn permits(&self, page: Page, access: Access) -> bool {
        let now = self.core().ports.pages.access(page.0);
        match access {
            Access::None => true,
            Access::Read => now >= gondwana_memory::Access::Read,
            Access::Write => now == gondwana_memory::Access::Write,
        }
    }

    /// Waits for an event of `mask`, receiving messages meanwhile; 0 if the time is over first.
    pub(crate) fn wait(&'static self, slot: Slot, mask: u32, until: Option<Instant>) -> u32 {
        let seen = self.slots.seen(slot, mask);
        if seen != 0 {
            return seen;
        }
        let start = Instant::now();
        if !self.spin.is_zero() {
            let _polling = Polling::begin(self.fabric.as_ref());
            while start.elapsed() < self.spin {
                self.receive();
                let seen = self.slots.seen(slot, mask);
                if seen != 0 {
                    crate::stats::add_since(&self.times.waiting, start);
                    return seen;
                }
                std::hint::spin_loop();
            }
        }
        let seen = self.slots.sleep(slot, mask, until);
        crate::stats::add_since(&self.times.waiting, start);
        seen
    }
}
