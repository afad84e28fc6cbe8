//! How many threads of the program run, where the nodes of one computer outnumber its processors. Polling is no good there for a thread
//! that keeps another one from its processor, whichever node that is of.

use std::sync::atomic::{AtomicU64, Ordering};

/// The threads of all nodes that run.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    /// In memory that all nodes map.
    running: &'static AtomicU64,
    /// How many processors the nodes have together.
    processors: u64,
}

impl Crowd {
    /// Counts in a word that all nodes map.
    pub(crate) fn new(running: &'static AtomicU64, processors: usize) -> Self {
        Self { running, processors: processors as u64 }
    }

    /// A thread of this node begins.
    pub(crate) fn enter(self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread of this node ends.
    pub(crate) fn leave(self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Calls a function in which the thread sleeps.
    pub(crate) fn asleep<R>(self, sleep: impl FnOnce() -> R) -> R {
        self.leave();
        let result = sleep();
        self.enter();
        result
    }

    /// True if each thread that runs, the calling one among them, has a processor.
    pub(crate) fn fits(self) -> bool {
        self.running.load(Ordering::Relaxed) <= self.processors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_needs_no_processor() {
        let crowd = Crowd::new(Box::leak(Box::default()), 2);
        (0..3).for_each(|_| crowd.enter());
        assert!(!crowd.fits());
        assert!(crowd.asleep(|| crowd.fits()));
        assert!(!crowd.fits());
        crowd.leave();
        assert!(crowd.fits());
    }
}
