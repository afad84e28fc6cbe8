//! Threshold events: those of the program's filters go to the program, the others to the user.

use crate::wait_slots::{futex_wait, futex_wake};
use crate::{Node, Thread};
use gondwana_control::{Reached, Report};
use gondwana_locks::lock;
use gondwana_monitor::{FilterId, MOST_FILTERS};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The most events that one report to the user lists.
const MOST_TOLD: usize = 16;

/// The period in which the node looks for events while a callback is registered.
const PERIOD: Duration = Duration::from_millis(20);

const _: () = assert!(MOST_FILTERS <= u64::BITS as usize);

/// The program's callback for a threshold event: the number of the filter, the address of the unit, and the count.
pub type Callback = Box<dyn Fn(u8, u64, u64) + Send + Sync>;

thread_local! {
    /// Set in the thread that runs callbacks.
    static RUNS_CALLBACKS: Cell<bool> = const { Cell::new(false) };
}

/// True within a callback.
pub(super) fn in_callback() -> bool {
    RUNS_CALLBACKS.get()
}

/// The callbacks of this node, and the events on their way to them.
#[derive(Default)]
pub(super) struct ThresholdCallbacks {
    /// The filters of this node's bank that have a callback on some node, one bit each.
    filters: AtomicU64,
    /// The callbacks of this node, by token.
    callbacks: Mutex<BTreeMap<u64, Arc<Callback>>>,
    /// The next token.
    next: AtomicU64,
    /// Events, of this node's bank and of others, for which no callback has run yet.
    queue: Mutex<VecDeque<Reached>>,
    /// Held while a callback runs.
    calling: Mutex<()>,
    /// Rung when a callback is registered, and when an event of another node arrives.
    bell: AtomicU32,
    /// True once the thread that runs callbacks has started.
    has_thread: AtomicBool,
}

impl ThresholdCallbacks {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Reached>> {
        lock(&self.queue)
    }

    fn callbacks(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Callback>>> {
        lock(&self.callbacks)
    }

    /// Registers a callback and returns its token.
    pub(super) fn register(&self, callback: Callback) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.callbacks().insert(token, Arc::new(callback));
        token
    }

    /// Removes a callback: it does not begin to run after this.
    pub(super) fn forget(&self, token: u64) {
        let _dropped_when_unlocked = self.callbacks().remove(&token);
    }

    /// Returns when no callback is running that began before this call.
    pub(super) fn wait_for_callback(&self) {
        drop(lock(&self.calling));
    }

    /// Queues an event of this node's bank or of another one for a callback of this node.
    pub(super) fn put(&self, reached: Reached) {
        self.queue().push_back(reached);
        self.ring();
    }

    fn ring(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        futex_wake(&self.bell);
    }

    fn call(&self, reached: Reached) {
        let _calling = lock(&self.calling);
        let callback = self.callbacks().get(&reached.token).cloned();
        if let Some(callback) = callback {
            callback(reached.filter, reached.address, reached.count);
        }
    }
}

impl Node {
    /// Registers that a node of the run has a callback for this filter of this bank.
    ///
    /// # Errors
    /// If the system refuses the thread that runs callbacks.
    pub(super) fn listen(&'static self, filter: FilterId) -> std::io::Result<()> {
        let threshold_callbacks = &self.monitor.threshold_callbacks;
        threshold_callbacks.filters.fetch_or(1 << filter.0, Ordering::AcqRel);
        threshold_callbacks.ring();
        if threshold_callbacks.has_thread.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let started = Thread::start_native("thresholds", move || {
            RUNS_CALLBACKS.set(true);
            self.run_callbacks();
        });
        started.inspect_err(|_| threshold_callbacks.has_thread.store(false, Ordering::Release))
    }

    /// Removes that registration: the filter is about to be removed.
    pub(super) fn listen_no_more(&'static self, filter: FilterId, token: u64) {
        let threshold_callbacks = &self.monitor.threshold_callbacks;
        // Another filter may get the number, and must not get the events of this one.
        self.pass_on_thresholds();
        threshold_callbacks.filters.fetch_and(!(1 << filter.0), Ordering::AcqRel);
        if self.monitor.banks.of_bank(filter.0).is_some_and(|(_, set)| set.asker == self.me.0) {
            threshold_callbacks.forget(token);
        }
    }

    fn run_callbacks(&'static self) {
        let threshold_callbacks = &self.monitor.threshold_callbacks;
        loop {
            let rung = threshold_callbacks.bell.load(Ordering::Acquire);
            self.attempt(|| self.pass_on_thresholds());
            // Not in the condition of the loop: the queue would stay locked while the callback runs.
            let next = || threshold_callbacks.queue().pop_front();
            let mut reached = next();
            while let Some(what) = reached {
                threshold_callbacks.call(what);
                reached = next();
            }
            let listens = threshold_callbacks.filters.load(Ordering::Acquire) != 0;
            futex_wait(&threshold_callbacks.bell, rung, listens.then_some(PERIOD));
        }
    }

    /// Takes the events of this node's bank. Events of the program's filters go to the nodes that requested them, the
    /// others to the user.
    pub(super) fn pass_on_thresholds(&'static self) {
        let (mut for_user, mut more, mut for_others) = (vec![], 0, vec![]);
        {
            let configuration = self.monitor.configuration();
            let Some(configuration) = configuration.as_ref() else { return };
            self.count_one_sided_reads(configuration, |filter| filter.threshold.is_some());
            // `next_event` needs one thread at a time: this one holds the configuration.
            while let Some(event) = configuration.bank().next_event() {
                let listened = self
                    .monitor
                    .banks
                    .of_bank(event.filter)
                    .and_then(|(number, set)| Some((number, set.asker, set.token?)));
                match listened {
                    Some((filter, asker, token)) => {
                        let reached = Reached { token, filter, address: event.address, count: event.count };
                        if asker == self.me.0 {
                            self.monitor.threshold_callbacks.queue().push_back(reached);
                        } else {
                            for_others.push((asker, reached));
                        }
                    }
                    None if for_user.len() < MOST_TOLD => for_user.push((event.address, event.count)),
                    None => more += 1,
                }
            }
        }
        for (node, reached) in for_others {
            self.report(&Report::Reached { node, reached });
        }
        if !for_user.is_empty() {
            self.report(&Report::Thresholds { reached: for_user, more });
        }
    }
}
