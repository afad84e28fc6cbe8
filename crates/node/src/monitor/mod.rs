//! The monitor of one node: it observes transactions, and records them.
//!
//! The *event sink* sees transactions under the node's lock and adds them up in an aggregation table. The monitor's thread
//! replaces the table by an empty one four times a second, and sends the rows to the launcher. The fault path never sends,
//! allocates or waits for the monitor.

mod attribution;
mod constructs;
mod event_sink;
#[cfg(test)]
mod event_sink_tests;
mod failure;
mod filters;
mod launcher_answers;
mod names;
mod one_sided_reads;
mod outbox;
mod predicted_writes;
mod program_filters;
mod recorder;
mod thresholds;

pub use attribution::{Attribution, Stacks, Threads};
pub use constructs::Construct as MonitoredConstruct;
pub use event_sink::{EventSink, Touch};
pub use thresholds::Callback;

use crate::{Node, Thread};
use attribution::Written;
use constructs::Constructs;
use gondwana_control::{BankAnswer, BankError, Monitoring, Order, Report};
use gondwana_locks::lock;
use gondwana_monitor::{AggregationTable, BankConfiguration, FilterId};
use gondwana_topology::NodeId;
use launcher_answers::{Answers, Refusal};
use names::GivenNames;
use outbox::Outbox;
use program_filters::ProgramFilters;
use recorder::Recorder;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use thresholds::ThresholdCallbacks;

/// The period in which the table is taken: a node that is killed loses as much of its recording.
const PERIOD: Duration = Duration::from_millis(250);

/// The part of the monitor outside the node's lock.
#[derive(Default)]
pub struct Monitor {
    /// The recorder, while the run is recorded.
    recorder: Mutex<Option<Recorder>>,
    /// Set when the node is about to end: nothing is recorded after that. Written under the recorder's lock.
    over: AtomicBool,
    /// The configuration of the counter bank, once a filter has been set.
    configuration: Mutex<Option<BankConfiguration>>,
    /// Blocks, sites and pointers, collected since the run was first monitored; kept for later recordings.
    attribution: OnceLock<Attribution>,
    /// The threads that have started, also for recordings that begin later.
    pub threads: Threads,
    /// Filters that came with the present recording.
    ordered: Mutex<Vec<FilterId>>,
    /// Callbacks of the program for threshold events.
    threshold_callbacks: ThresholdCallbacks,
    /// Work and waiting in constructs of OpenMP.
    constructs: Constructs,
    /// Names that the program gives its data.
    names: GivenNames,
    /// Records on their way to the launcher.
    outbox: Outbox,
    /// The launcher's answers to the program.
    answers: Answers<Result<(), Refusal>>,
    /// The program's filters.
    banks: ProgramFilters,
    /// The answers of all counter banks to the program.
    bank_answers: Answers<BankAnswer>,
}

impl Monitor {
    /// The attribution of the program's data, if the run is or was monitored.
    #[inline]
    pub fn attribution(&self) -> Option<&Attribution> {
        self.attribution.get()
    }

    fn recorder(&self) -> MutexGuard<'_, Option<Recorder>> {
        lock(&self.recorder)
    }

    fn configuration(&self) -> MutexGuard<'_, Option<BankConfiguration>> {
        lock(&self.configuration)
    }
}

impl Node {
    /// Starts the monitor's thread. It records if the run is monitored from its start, and carries out later orders
    /// of the launcher.
    pub fn begin_monitoring(&'static self) {
        if let Some(asked) = &self.boot.monitor {
            self.start_monitoring(asked);
        }
        let settled = Arc::new(Barrier::new(2));
        let started = Thread::start_native("monitor", {
            let settled = Arc::clone(&settled);
            move || {
                // The thread's first allocation happens here, before the program starts, as in the service thread.
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

    /// Records from now on; a recording in progress begins anew.
    fn start_monitoring(&'static self, asked: &Monitoring) {
        // Made before the lock is taken, and the old one is dropped after it is released: both are large.
        let written = Arc::new(Written::new());
        let mut sink =
            Some(Box::new(EventSink::recording(self.geometry.clone(), asked.auto, Arc::clone(&written))));
        let mut recorder = self.monitor.recorder();
        if self.monitor.over.load(Ordering::Relaxed) {
            return;
        }
        // Before anything is recorded, so that filters count everything that is.
        let refused = self.set_filters(&asked.filters);
        // All nodes refuse the same filters.
        if self.me == NodeId(0) {
            refused.into_iter().for_each(|what| self.report(&Report::Refused { what }));
        }
        {
            let mut core = self.core();
            let bank = core.env.sink.as_ref().and_then(|before| before.bank.clone());
            std::mem::swap(&mut core.env.sink, &mut sink);
            core.env.sink.iter_mut().for_each(|sink| sink.bank = bank.clone());
        }
        self.begin_attribution();
        self.monitor.constructs.begin();
        if let Some(mut before) = recorder.take() {
            before.remove_own_filters(self);
        }
        let filter_refinement = asked.auto.then(|| self.filter_refinement());
        recorder.insert(Recorder::new(filter_refinement, written)).begin(self);
    }

    /// Starts to collect allocations; everything that was collected before is emitted again.
    fn begin_attribution(&self) {
        if let Some(attribution) = self.monitor.attribution() {
            attribution.emit_again();
            return;
        }
        match Attribution::new(self.heap.layout(), self.me) {
            Ok(attribution) => {
                self.monitor.attribution.get_or_init(|| attribution);
            }
            Err(error) => self.refuse(&format!("the monitor cannot tell whose data it is: {error}")),
        }
    }

    /// Writes what has not been written yet, and stops recording.
    fn stop_monitoring(&'static self) {
        let mut recording = self.monitor.recorder();
        let Some(recorder) = recording.as_mut() else { return };
        // Under the lock: the node may be about to end, and waits then until the last record has been sent.
        recorder.end(self);
        let ended = recording.take();
        drop(recording);
        // Large, so after the lock is released.
        drop(ended);
        self.monitor.constructs.end();
        self.remove_ordered_filters();
        drop(self.stop_aggregation());
    }

    /// Stops aggregating. Returns the table, and the event sink if it does not count either: both are large, and the
    /// caller drops them after the lock is released.
    fn stop_aggregation(&self) -> (Option<AggregationTable>, Option<Box<EventSink>>) {
        let mut core = self.core();
        let table = core.env.sink.as_mut().and_then(|sink| sink.table.take());
        (table, core.env.sink.take_if(|sink| sink.bank.is_none()))
    }

    /// Carries out the launcher's orders until the launcher ends, and records meanwhile.
    fn monitor(&'static self) {
        loop {
            // First iteration: the program is about to start, and hardly anything has happened.
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
                self.pass_on_thresholds();
            });
        }
    }

    /// Carries out an order. A thread that waits for the result gets an answer in any case.
    fn follow(&'static self, order: Order) {
        match order {
            Order::Monitor(asked) => {
                self.attempt(|| self.start_monitoring(&asked));
            }
            Order::Unmonitor => {
                self.attempt(|| self.stop_monitoring());
            }
            Order::Count => {
                self.attempt(|| self.report_counters());
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
            Order::Reached(reached) => self.monitor.threshold_callbacks.put(reached),
            Order::Waits => self.report_waits((self.hooks.handles_signals)()),
            Order::Die => self.run_end.let_die(),
            Order::LetTrace { process } => crate::exit::let_trace(process),
        }
    }

    /// Reports the counters of all filters to the launcher.
    fn report_counters(&'static self) {
        let time = self.monitor.recorder().as_ref().map_or(0, Recorder::now);
        if let Some(configuration) = self.monitor.configuration().as_ref() {
            self.count_one_sided_reads(configuration, |_| true);
            recorder::write_counters(self, configuration, time);
            self.send_records();
        }
    }

    /// Writes most of what has not been written yet, while other nodes prepare to end.
    pub(crate) fn prepare_end_of_recording(&'static self) {
        self.attempt(|| {
            if let Some(recorder) = self.monitor.recorder().as_mut() {
                recorder.prepare_end(self);
            }
        });
    }

    /// Writes what has not been written yet. The node is about to end, or to stop until it is killed.
    pub(crate) fn end_recording(&'static self) {
        self.attempt(|| {
            let mut recorder = self.monitor.recorder();
            self.monitor.over.store(true, Ordering::Relaxed);
            if let Some(recorder) = recorder.as_mut() {
                self.pass_on_thresholds();
                recorder.end(self);
            }
        });
    }
}
