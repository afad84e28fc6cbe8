//! Faults of the program on shared memory.
//!
//! Neither this code nor the predictor allocates (`crates/prefetch/tests/allocation.rs`). Below it memory comes from the
//! allocator in three places only, all rare. The protocol's lists (dirty pages, threads that wait) keep their room between
//! releases and double when they grow. The page table allocates a block of entries with the first page of the block, and
//! twins a chunk of frames. A message for a ring that is full is copied to its backlog.

use crate::monitor::Touch;
use crate::wait_slots::event;
use crate::{Node, Thread};
use gondwana_coherence::{Access, HomeRole, Outcome, Page};
use gondwana_control::Awaited;
use gondwana_page::whole_pages;
use gondwana_prefetch::{Fault, Kind, Prediction, Prefetch};

/// Most pages that one fault prefetches.
const MOST_PREFETCHED: u32 = 127;

/// Pages of a stack that one fault brings in below the one that was touched: frames grow downwards.
const STACK_AHEAD: u32 = 15;

impl Node {
    /// Resolves a fault at a shared address, of the instruction at the address `code`. False if the program's own protection
    /// forbids the access, or the address is not shared: then it is the program's own mistake.
    pub fn fault(&'static self, address: usize, write: bool, code: usize, signal: i32) -> bool {
        let Some(number) = self.geometry.page_of(address) else { return false };
        crate::inject::at("fault");
        let page = Page(number);
        let access = if write { Access::Write } else { Access::Read };
        if signal == libc::SIGSEGV && self.core().env.pages.is_forbidden(number, access) {
            // The program's own protection (a guard page) forbids what the protocol allows.
            return false;
        }
        let touch = Touch { address, code, writer: None };
        let thread = Thread::current(self);
        if thread.stack.contains(&address) {
            let below = STACK_AHEAD.min(whole_pages(address - thread.stack.start));
            self.resolve(Page(number - below), Access::Write, Prefetch::next(below), touch);
        }
        if access == Access::Read
            && let Some(window) = self.placement.replicated.around(number)
        {
            self.bring_around(number, &window);
        }
        let core = self.core();
        let resident = core.env.pages.access(number) != Access::None;
        let touched = !matches!(core.home_role(page), HomeRole::Untouched | HomeRole::Placed(_));
        let absent = core.is_absent(page);
        drop(core);
        let kind = Kind::of(write, resident, touched);
        let Prediction { prefetch, writer } = match (kind, thread.predictor.try_borrow_mut()) {
            (Some(kind), Ok(mut predictor)) => {
                predictor.predict(Fault { page: number, code, kind, absent }, MOST_PREFETCHED)
            }
            _ => Prediction::NONE,
        };
        let access = if writer.is_some() { Access::Write } else { access };
        self.resolve(page, access, prefetch, Touch { writer, ..touch });
        true
    }

    /// The calling thread is about to synchronise at a shared address: by an atomic instruction, or by waiting for what others write there.
    pub fn promote(&'static self, address: usize) {
        let Some(number) = self.geometry.page_of(address) else { return };
        let slot = Thread::current(self).slot;
        self.waiting.slots.arm(slot, event::COHERENT);
        let poller = self.poll();
        let outcome = self.core().promote(Page(number), slot);
        if outcome == Outcome::Wait {
            let _noted = self.note_wait(slot, Awaited::Page, address as u64, None);
            self.wait_polling(poller, slot, event::COHERENT, None);
        }
    }

    /// Brings a page in for the calling thread, with those after it where that is cheap.
    pub(crate) fn resolve(&'static self, page: Page, access: Access, prefetch: Prefetch, touch: Touch) {
        let slot = Thread::current(self).slot;
        self.waiting.slots.arm(slot, event::COHERENT);
        // Declared before the request leaves: the answer is this thread's to receive, however soon it comes.
        let poller = self.poll();
        let mut core = self.core();
        // Another thread may have resolved it.
        if core.refresh(page, access) {
            return;
        }
        let outcome = core.fault(page, access, prefetch, slot, touch);
        drop(core);
        if outcome == Outcome::Wait {
            let _noted = self.note_wait(slot, Awaited::Page, touch.address as u64, None);
            self.threads.goes_on_soon(true);
            self.wait_polling(poller, slot, event::COHERENT, None);
            self.threads.goes_on_soon(false);
            if self.has_owners() {
                self.core().repeats(page);
            }
        }
    }
}
