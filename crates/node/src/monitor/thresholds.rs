//! Thresholds that have been reached: the program hears of those of its own filters, the user of the others.

use crate::wait_slots::{futex_wait, futex_wake};
use crate::{Node, Thread, service};
use gondwana_control::{Reached, Report};
use gondwana_monitor::{FilterId, MOST_FILTERS};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most events of thresholds that the user is told of at once.
const MOST_TOLD: usize = 16;

/// How often the program hears of its thresholds, while it wants to.
const PERIOD: Duration = Duration::from_millis(20);

const _: () = assert!(MOST_FILTERS <= u64::BITS as usize);

/// Tells the program that a counter of a filter has reached its threshold: the number of the filter, the address of the unit,
/// and the count.
pub type Callback = Box<dyn Fn(u8, u64, u64) + Send + Sync>;

thread_local! {
    /// This is the thread that calls the program.
    static TELLS: Cell<bool> = const { Cell::new(false) };
}

/// True within a callback.
pub fn is_telling() -> bool {
    TELLS.get()
}

/// Thresholds that the program wants to hear of.
#[derive(Default)]
pub struct Listening {
    /// The filters of this node's bank that somebody listens to, a bit each.
    filters: AtomicU64,
    /// Those of this node who listen to filters of the run, by their tokens.
    callbacks: Mutex<BTreeMap<u64, Arc<Callback>>>,
    /// The next token.
    next: AtomicU64,
    /// Events that the program has not heard of, from this bank and others.
    queue: Mutex<VecDeque<Reached>>,
    /// Held while a callback runs.
    calling: Mutex<()>,
    /// Rung when somebody begins to listen, and when another node has something to tell.
    bell: AtomicU32,
    /// There is a thread that tells the program.
    has_thread: AtomicBool,
}

impl Listening {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Reached>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callbacks(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Callback>>> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody will listen; gives the token.
    pub fn register(&self, callback: Callback) -> u64 {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.callbacks().insert(token, Arc::new(callback));
        token
    }

    /// Somebody listens no more: no callback begins after this.
    pub fn forget(&self, token: u64) {
        let _dropped_when_unlocked = self.callbacks().remove(&token);
    }

    /// Returns when no callback runs that has begun before.
    pub fn wait_for_callback(&self) {
        drop(self.calling.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A counter of a filter that this node listens to has reached its threshold, here or on another node.
    pub fn put(&self, reached: Reached) {
        self.queue().push_back(reached);
        self.ring();
    }

    fn ring(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        futex_wake(&self.bell);
    }

    fn call(&self, reached: Reached) {
        let _calling = self.calling.lock().unwrap_or_else(PoisonError::into_inner);
        let callback = self.callbacks().get(&reached.token).cloned();
        if let Some(callback) = callback {
            callback(reached.filter, reached.address, reached.count);
        }
    }
}

impl Node {
    /// Somebody of the run wants to hear when counters of a filter on this bank reach its threshold.
    ///
    /// # Errors
    /// Of the system, if there is no room for the thread that tells it.
    pub(super) fn listen(&'static self, filter: FilterId) -> std::io::Result<()> {
        let listening = &self.monitor.listening;
        listening.filters.fetch_or(1 << filter.0, Ordering::AcqRel);
        listening.ring();
        if listening.has_thread.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let started = Thread::start_native("thresholds", move || {
            service::block_all_signals();
            TELLS.set(true);
            self.tell_program();
        });
        started.inspect_err(|_| listening.has_thread.store(false, Ordering::Release))
    }

    /// Nobody wants to hear any more of a filter, which goes.
    pub(super) fn listen_no_more(&'static self, filter: FilterId, token: u64) {
        let listening = &self.monitor.listening;
        // Its number may be given to another one, which must not be told of what this one has raised.
        self.tell_thresholds();
        listening.filters.fetch_and(!(1 << filter.0), Ordering::AcqRel);
        if self.monitor.banks.of_bank(filter.0).is_some_and(|(_, set)| set.asker == self.me.0) {
            listening.forget(token);
        }
    }

    fn tell_program(&'static self) {
        let listening = &self.monitor.listening;
        loop {
            let rung = listening.bell.load(Ordering::Acquire);
            self.attempt(|| self.tell_thresholds());
            // Not in the condition of a loop, where the queue would be locked while the program is told.
            let next = || listening.queue().pop_front();
            let mut reached = next();
            while let Some(what) = reached {
                listening.call(what);
                reached = next();
            }
            let listens = listening.filters.load(Ordering::Acquire) != 0;
            futex_wait(&listening.bell, rung, listens.then_some(PERIOD));
        }
    }

    /// Takes the events that thresholds have raised: those of the program's filters go to the nodes that have asked for them,
    /// the user is told of the others.
    pub(super) fn tell_thresholds(&'static self) {
        let (mut for_user, mut more, mut for_others) = (vec![], 0, vec![]);
        {
            let configuration = self.monitor.configuration();
            let Some(configuration) = configuration.as_ref() else { return };
            self.count_one_sided_reads(configuration, |filter| filter.threshold.is_some());
            // One thread at a time, since it has the configuration.
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
                            self.monitor.listening.queue().push_back(reached);
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
