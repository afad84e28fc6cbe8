//! A panic in the monitor costs the recording, never the run.

use super::Monitor;
use crate::Node;
use crate::defect::attempt;

use gondwana_control::Report;

impl Monitor {
    /// Drops the recorder, whose state may be inconsistent.
    fn give_up(&self) {
        *self.recorder() = None;
    }
}

impl Node {
    /// Runs a part of the monitor. If it panics, this node stops recording, the user gets a sentence, and the program
    /// goes on.
    pub(super) fn attempt<R>(&'static self, what: impl FnOnce() -> R) -> Option<R> {
        attempt(what)
            .inspect_err(|why| {
                self.monitor.give_up();
                drop(self.stop_aggregation());
                self.report(&Report::Unrecorded { why: why.clone() });
            })
            .ok()
    }
}
