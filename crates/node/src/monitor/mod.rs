//! The monitor of this node: what it sees, and how that gets into the recording.
//!
//! The *tap* sees transactions under the node's lock and adds them up in a journal. A thread of the node's own takes the
//! journal a few times a second, puts an empty one in its place, and sends what was in it to the launcher. Nothing is
//! sent, allocated or waited for where a thread of the program has a fault.

mod recorder;
mod tap;

pub use tap::{Tap, Touch};

use crate::slots::{futex_wait, futex_wake};
use crate::{Node, Thread, service};
use recorder::Recorder;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

/// How often the journal is taken: as much of a recording is missing if a node is killed.
const PERIOD: Duration = Duration::from_millis(250);

/// The part of the monitor that is outside the node's lock.
pub struct Monitor {
    recorder: Mutex<Recorder>,
    /// Rung when the recording has ended.
    bell: AtomicU32,
}

impl Monitor {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self { recorder: Mutex::new(Recorder::new()), bell: AtomicU32::new(0) }
    }

    fn recorder(&self) -> std::sync::MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Starts the thread that records, if the run is monitored.
    pub fn begin_monitoring(&'static self) {
        let Some(monitor) = &self.monitor else { return };
        let settled = Arc::new(Barrier::new(2));
        let started = Thread::start_native("monitor", {
            let settled = Arc::clone(&settled);
            move || {
                service::block_all_signals();
                // This allocates the first block of the thread, as the service thread does, before the program starts.
                monitor.recorder().begin(self);
                settled.wait();
                self.record(monitor);
            }
        });
        match started {
            Ok(()) => {
                settled.wait();
            }
            Err(error) => crate::fatal(&format!("starting the thread of the monitor: {error}")),
        }
    }

    fn record(&'static self, monitor: &Monitor) {
        while monitor.bell.load(Ordering::Acquire) == 0 {
            monitor.recorder().go_on(self);
            futex_wait(&monitor.bell, 0, Some(PERIOD));
        }
    }

    /// Writes down what has not been written yet. The node is about to end, or to stand still until it is ended.
    pub(crate) fn end_recording(&'static self) {
        if let Some(monitor) = &self.monitor {
            monitor.recorder().end(self);
            monitor.bell.store(1, Ordering::Release);
            futex_wake(&monitor.bell);
        }
    }
}
