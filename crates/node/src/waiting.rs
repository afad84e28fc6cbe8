//! How threads of this node wait: their wait slots, and how long they poll first.

use crate::adaptive_spin::AdaptiveSpin;
use crate::wait_slots::{WaitSlots, event};
use std::sync::Arc;

/// The wait slots, and the adaptive spins of each kind of wait.
pub(crate) struct Waiting {
    /// Where each thread waits.
    pub(crate) slots: Arc<WaitSlots>,
    /// Of threads that wait for pages, which come soon or from a busy node.
    pages: AdaptiveSpin,
    /// Of threads that wait for what other threads do.
    threads: AdaptiveSpin,
    /// Of threads that wait for common mutexes.
    pub(crate) mutexes: AdaptiveSpin,
    /// Of the service thread.
    pub(crate) service: AdaptiveSpin,
}

impl Waiting {
    /// Nothing is learned yet. Where `nodes` of one computer outnumber its `processors`, no thread polls.
    pub(crate) fn new(slots: Arc<WaitSlots>, processors: usize, nodes: usize) -> Self {
        let spin = || AdaptiveSpin::new(processors, nodes);
        Self { slots, pages: spin(), threads: spin(), mutexes: spin(), service: spin() }
    }

    /// True if threads of this node ever poll.
    pub(crate) fn polls(&self) -> bool {
        !self.threads.is_none()
    }

    /// The adaptive spin for waits for an event of `mask`.
    pub(crate) fn spin_for(&self, mask: u32) -> &AdaptiveSpin {
        if mask == event::COHERENT { &self.pages } else { &self.threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn waits_for_pages_and_for_threads_learn_apart() {
        let waiting = Waiting::new(Arc::new(WaitSlots::new()), 2, 2);
        assert!(waiting.polls());
        let longest = waiting.spin_for(event::COHERENT).now();
        waiting.spin_for(event::LOCKED).learn(false);
        assert_eq!(waiting.spin_for(event::COHERENT).now(), longest);
        waiting.spin_for(event::COHERENT).learn(false);
        // The first wait with a shorter spin probes the longest one.
        let _probe = waiting.spin_for(event::COHERENT).now();
        assert!(waiting.spin_for(event::COHERENT).now() < longest);
    }

    #[test]
    fn nodes_that_share_processors_do_not_poll() {
        let waiting = Waiting::new(Arc::new(WaitSlots::new()), 1, 2);
        assert!(!waiting.polls());
        assert_eq!(waiting.spin_for(event::PASSED).now(), Duration::ZERO);
    }
}
