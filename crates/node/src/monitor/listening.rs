//! Thresholds that have been reached: the program hears of those of its own filters, the user of the others.

use crate::control::Report;
use crate::slots::{futex_wait, futex_wake};
use crate::{Node, Thread, service};
use gondwana_monitor::{Event, FilterId, MOST_FILTERS};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most events of thresholds that the user is told of at once.
const MOST_TOLD: usize = 16;

/// How often the program hears of its thresholds, while it wants to.
const PERIOD: Duration = Duration::from_millis(20);

const _: () = assert!(MOST_FILTERS <= u64::BITS as usize);

/// Thresholds that the program wants to hear of.
#[derive(Default)]
pub struct Listening {
    /// Its filters, a bit each.
    filters: AtomicU64,
    /// Events that it has not heard of.
    queue: Mutex<VecDeque<Event>>,
    /// Rung when the program begins to listen.
    bell: AtomicU32,
    /// There is a thread that tells the program.
    has_thread: AtomicBool,
}

impl Listening {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_about(&self, filter: u8) -> bool {
        self.filters.load(Ordering::Acquire) >> filter & 1 != 0
    }
}

impl Node {
    /// The program wants to hear, by [`Hooks::reached`](crate::Hooks), when counters of a filter reach its threshold.
    ///
    /// # Errors
    /// Of the system, if there is no room for the thread that tells it.
    pub fn listen(&'static self, filter: FilterId) -> std::io::Result<()> {
        let listening = &self.monitor.listening;
        listening.filters.fetch_or(1 << filter.0, Ordering::AcqRel);
        listening.bell.fetch_add(1, Ordering::Release);
        futex_wake(&listening.bell);
        if listening.has_thread.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let started = Thread::start_native("thresholds", move || {
            service::block_all_signals();
            self.tell_program();
        });
        started.inspect_err(|_| listening.has_thread.store(false, Ordering::Release))
    }

    /// The program wants to hear no more of a filter.
    pub fn listen_no_more(&'static self, filter: FilterId) {
        let listening = &self.monitor.listening;
        // Its number may be given to another one, which must not be told of what this one has raised.
        self.tell_thresholds();
        listening.filters.fetch_and(!(1 << filter.0), Ordering::AcqRel);
        listening.queue().retain(|event| event.filter != filter.0);
    }

    fn tell_program(&'static self) {
        let listening = &self.monitor.listening;
        loop {
            let rung = listening.bell.load(Ordering::Acquire);
            self.tell_thresholds();
            // Not in the condition of a loop, where the queue would be locked while the program is told.
            let next = || listening.queue().pop_front();
            let mut event = next();
            while let Some(Event { filter, address, count }) = event {
                (self.hooks.reached)(filter, address, count);
                event = next();
            }
            let listens = listening.filters.load(Ordering::Acquire) != 0;
            futex_wait(&listening.bell, rung, listens.then_some(PERIOD));
        }
    }

    /// Takes the events that thresholds have raised: those of the program's filters wait for it, the user is told of the
    /// others.
    pub(super) fn tell_thresholds(&'static self) {
        let (mut reached, mut more) = (vec![], 0);
        {
            let panel = self.monitor.panel();
            let Some(panel) = panel.as_ref() else { return };
            // One thread at a time, since it has the panel.
            while let Some(event) = panel.board().next_event() {
                if self.monitor.listening.is_about(event.filter) {
                    self.monitor.listening.queue().push_back(event);
                } else if reached.len() < MOST_TOLD {
                    reached.push((event.address, event.count));
                } else {
                    more += 1;
                }
            }
        }
        if !reached.is_empty() {
            self.report(&Report::Thresholds { reached, more });
        }
    }
}
