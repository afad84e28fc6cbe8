//! A mistake in the monitor costs the recording, never the run.

use super::Monitor;
use crate::Node;
use crate::defect::attempt;
use gondwana_control::Report;

impl Monitor {
    /// Forgets the recording, which what has failed may have left half done.
    fn give_up(&self) {
        *self.recorder() = None;
    }
}

impl Node {
    /// Does something for the monitor. If that fails, nothing more is recorded here, the user hears of it, and the program goes on.
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
