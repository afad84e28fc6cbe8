//! The monitor of this node: what it sees, and how that gets into the recording.
//!
//! The *tap* sees transactions under the node's lock and adds them up in a table. A thread of the node's own takes the
//! table a few times a second, puts an empty one in its place, and sends what was in it to the launcher. Nothing is
//! sent, allocated or waited for where a thread of the program has a fault.

mod attribution;
mod failure;
mod filters;
mod launcher_answers;
mod names;
mod one_sided_reads;
mod outbox;
mod predicted_writes;
mod program_filters;
mod recorder;
mod tap;
#[cfg(test)]
mod tap_tests;
mod thresholds;

pub use attribution::{Attribution, Stacks, Threads};
pub use tap::{Tap, Touch};
pub use thresholds::Callback;

use crate::{Node, Thread, service};
use attribution::Written;
use gondwana_control::{BankAnswer, BankError, Monitoring, Order, Report};
use gondwana_monitor::{AggregationTable, BankConfiguration, FilterId};
use gondwana_topology::NodeId;
use launcher_answers::{Answers, Refusal};
use names::GivenNames;
use outbox::Outbox;
use program_filters::ProgramFilters;
use recorder::Recorder;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use thresholds::Listening;

/// How often the table is taken: as much of a recording is missing if a node is killed.
const PERIOD: Duration = Duration::from_millis(250);

/// The part of the monitor that is outside the node's lock.
#[derive(Default)]
pub struct Monitor {
    /// Nothing while the run is not recorded.
    recorder: Mutex<Option<Recorder>>,
    /// The node is about to end: nothing is recorded any more. Changed by the one who has the recorder.
    over: AtomicBool,
    /// Where filters are set, once there have been any.
    configuration: Mutex<Option<BankConfiguration>>,
    /// What is known of the data, from when the run is first monitored: it stays for a later recording.
    attribution: OnceLock<Attribution>,
    /// The threads that have started: of a recording that begins later, too.
    pub threads: Threads,
    /// Filters that the present recording has come with.
    ordered: Mutex<Vec<FilterId>>,
    /// Thresholds that the program wants to hear of.
    listening: Listening,
    /// What the program calls its data.
    names: GivenNames,
    /// Records on their way to the launcher.
    outbox: Outbox,
    /// What the launcher has answered the program.
    answers: Answers<Result<(), Refusal>>,
    /// Filters of the program.
    banks: ProgramFilters,
    /// What the banks of all nodes have answered the program.
    bank_answers: Answers<BankAnswer>,
}

impl Monitor {
    /// What is known of the data, if the run is or was monitored.
    #[inline]
    pub fn attribution(&self) -> Option<&Attribution> {
        self.attribution.get()
    }

    fn recorder(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn configuration(&self) -> MutexGuard<'_, Option<BankConfiguration>> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Starts the thread of the monitor. It records if the run is monitored from its start, and does what the launcher
    /// orders later.
    pub fn begin_monitoring(&'static self) {
        if let Some(asked) = &self.boot.monitor {
            self.start_monitoring(asked);
        }
        let settled = Arc::new(Barrier::new(2));
        let started = Thread::start_native("monitor", {
            let settled = Arc::clone(&settled);
            move || {
                service::block_all_signals();
                // The first block of the thread, as the service thread has it before the program starts.
                drop(std::hint::black_box(Box::new(0_u8)));
                settled.wait();
                self.monitor();
            }
        });
        match started {
            Ok(()) => {
                settled.wait();
            }
            Err(error) => crate::fatal(&format!("starting the thread of the monitor: {error}")),
        }
    }

    /// Records from now on; a recording that goes on already begins anew.
    fn start_monitoring(&'static self, asked: &Monitoring) {
        // Made before the lock is taken, and the one before is dropped behind it: both are large.
        let written = Arc::new(Written::new());
        let mut tap =
            Some(Box::new(Tap::recording(self.me, self.geometry.clone(), asked.auto, Arc::clone(&written))));
        let mut recorder = self.monitor.recorder();
        if self.monitor.over.load(Ordering::Relaxed) {
            return;
        }
        // First: whatever is recorded has met them.
        let refused = self.set_filters(&asked.filters);
        // What is wrong with them is so on all nodes.
        if self.me == NodeId(0) {
            refused.into_iter().for_each(|what| self.report(&Report::Refused { what }));
        }
        {
            let mut core = self.core();
            let bank = core.ports.tap.as_ref().and_then(|before| before.bank.clone());
            std::mem::swap(&mut core.ports.tap, &mut tap);
            core.ports.tap.iter_mut().for_each(|tap| tap.bank = bank.clone());
        }
        self.begin_attribution();
        if let Some(mut before) = recorder.take() {
            before.remove_own_filters(self);
        }
        let filter_refinement = asked.auto.then(|| self.filter_refinement());
        recorder.insert(Recorder::new(filter_refinement, written)).begin(self);
    }

    /// Takes down from now on who allocates; what was taken down before is to be told again.
    fn begin_attribution(&self) {
        if let Some(attribution) = self.monitor.attribution() {
            attribution.tell_again();
            return;
        }
        match Attribution::new(self.heap.layout(), self.me) {
            Ok(attribution) => {
                self.monitor.attribution.get_or_init(|| attribution);
            }
            Err(error) => self.refuse(&format!("the monitor cannot tell whose data it is: {error}")),
        }
    }

    /// Writes down what has not been written yet, and records no more.
    fn stop_monitoring(&'static self) {
        let Some(mut recorder) = self.monitor.recorder().take() else { return };
        recorder.end(self);
        self.remove_ordered_filters();
        drop(self.stop_aggregation());
    }

    /// Writes nothing down any more. Gives what was written down and the tap, if nothing is counted either: both are large, and
    /// the lock is free when they are dropped.
    fn stop_aggregation(&self) -> (Option<AggregationTable>, Option<Box<Tap>>) {
        let mut core = self.core();
        let table = core.ports.tap.as_mut().and_then(|tap| tap.table.take());
        (table, core.ports.tap.take_if(|tap| tap.bank.is_none()))
    }

    /// Does what the launcher orders, until it is gone, and records meanwhile.
    fn monitor(&'static self) {
        loop {
            // First: the program is about to start, and hardly anything has happened.
            let recording = self.monitor.recorder().is_some();
            match self.control.receive_within(recording.then_some(PERIOD)) {
                Ok(Some(order)) => self.follow(order),
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                // This process ends with the launcher.
                Ok(None) | Err(_) => return,
            }
            self.attempt(|| {
                if let Some(recorder) = self.monitor.recorder().as_mut() {
                    recorder.go_on(self);
                }
                self.tell_thresholds();
            });
        }
    }

    /// Does what the launcher orders. Whoever waits for that is answered, whatever happens.
    fn follow(&'static self, order: Order) {
        match order {
            Order::Monitor(asked) => {
                self.attempt(|| self.start_monitoring(&asked));
            }
            Order::Unmonitor => {
                self.attempt(|| self.stop_monitoring());
            }
            Order::Count => {
                self.attempt(|| self.tell_counters());
                self.report(&Report::Counted);
            }
            Order::Answer(answer) => self.monitor.answers.put(answer.map_or(Ok(()), Err)),
            Order::Bank { asker, number, request } => {
                let done = self.attempt(|| self.do_on_bank(asker, number, &request));
                self.report(&Report::BankDone(done.unwrap_or_else(|| {
                    Err(BankError::Refused(libc::EIO, "the monitor of a node has failed".to_owned()))
                })));
            }
            Order::BankAnswer(answer) => self.monitor.bank_answers.put(answer),
            Order::Reached(reached) => self.monitor.listening.put(reached),
        }
    }

    /// Tells the launcher what the counters of filters have counted.
    fn tell_counters(&'static self) {
        let time = self.monitor.recorder().as_ref().map_or(0, Recorder::now);
        if let Some(configuration) = self.monitor.configuration().as_ref() {
            self.count_one_sided_reads(configuration, |_| true);
            recorder::write_counters(self, configuration, time);
            self.send_records();
        }
    }

    /// Writes down most of what has not been written yet, while other nodes get ready to end.
    pub(crate) fn prepare_end_of_recording(&'static self) {
        self.attempt(|| {
            if let Some(recorder) = self.monitor.recorder().as_mut() {
                recorder.prepare_end(self);
            }
        });
    }

    /// Writes down what has not been written yet. The node is about to end, or to stand still until it is ended.
    pub(crate) fn end_recording(&'static self) {
        self.attempt(|| {
            let mut recorder = self.monitor.recorder();
            self.monitor.over.store(true, Ordering::Relaxed);
            if let Some(recorder) = recorder.as_mut() {
                self.tell_thresholds();
                recorder.end(self);
            }
        });
    }
}
