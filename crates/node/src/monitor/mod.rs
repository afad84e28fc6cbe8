//! The monitor of this node: what it sees, and how that gets into the recording.
//!
//! The *tap* sees transactions under the node's lock and adds them up in a journal. A thread of the node's own takes the
//! journal a few times a second, puts an empty one in its place, and sends what was in it to the launcher. Nothing is
//! sent, allocated or waited for where a thread of the program has a fault.

mod recorder;
mod tap;

pub use tap::{Tap, Touch};

use crate::boot::Order;
use crate::{Node, Thread, service};
use recorder::Recorder;
use std::io::ErrorKind;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the journal is taken: as much of a recording is missing if a node is killed.
const PERIOD: Duration = Duration::from_millis(250);

/// The part of the monitor that is outside the node's lock.
#[derive(Default)]
pub struct Monitor {
    /// Nothing while the run is not monitored.
    recorder: Mutex<Option<Recorder>>,
}

impl Monitor {
    fn recorder(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Starts the thread of the monitor. It records if the run is monitored from its start, and does what the launcher
    /// orders later.
    pub fn begin_monitoring(&'static self) {
        if self.boot.monitor.is_some() {
            self.start_monitoring();
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
    fn start_monitoring(&'static self) {
        // Made before the lock is taken, and the one before is dropped behind it: both are large.
        let mut tap = Some(Box::new(Tap::new(self.me, self.geometry.clone())));
        let mut recorder = self.monitor.recorder();
        std::mem::swap(&mut self.core().ports.tap, &mut tap);
        recorder.insert(Recorder::new()).begin(self);
    }

    /// Writes down what has not been written yet, and records no more.
    fn stop_monitoring(&'static self) {
        let Some(mut recorder) = self.monitor.recorder().take() else { return };
        recorder.end(self);
        let tap = self.core().ports.tap.take();
        drop(tap);
    }

    /// Does what the launcher orders, until it is gone, and records meanwhile.
    fn monitor(&'static self) {
        loop {
            let recording = self.monitor.recorder().as_mut().map(|recorder| recorder.go_on(self)).is_some();
            match self.control.receive_within(recording.then_some(PERIOD)) {
                Ok(Some(Order::Monitor(_))) => self.start_monitoring(),
                Ok(Some(Order::Unmonitor)) => self.stop_monitoring(),
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                // This process ends with the launcher.
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Writes down what has not been written yet. The node is about to end, or to stand still until it is ended.
    pub(crate) fn end_recording(&'static self) {
        if let Some(recorder) = self.monitor.recorder().as_mut() {
            recorder.end(self);
        }
    }
}
