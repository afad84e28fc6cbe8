//! How threads of this node wait: their wait slots, and how long they poll first.

use crate::adaptive_spin::{AdaptiveSpin, MOST, MOST_IN_CROWD};
use crate::wait_slots::{WaitSlots, event};
use std::sync::Arc;
use std::time::Duration;

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
    /// Nothing is learned yet. Where nodes outnumber the processors, threads poll while a `crowd` leaves each one a processor. Without
    /// a processor for each node, service threads do not poll, and without a crowd either no thread does.
    pub(crate) fn new(slots: Arc<WaitSlots>, has_processor: bool, in_crowd: bool) -> Self {
        let (threads, service) = match (has_processor, in_crowd) {
            (true, _) => (MOST, MOST),
            (false, true) => (MOST_IN_CROWD, Duration::ZERO),
            (false, false) => (Duration::ZERO, Duration::ZERO),
        };
        let (spin, service) = (|| AdaptiveSpin::new(threads), AdaptiveSpin::new(service));
        Self { slots, pages: spin(), threads: spin(), mutexes: spin(), service }
    }

    /// True if threads of this node ever poll.
    pub(crate) fn polls(&self) -> bool {
        !self.threads.is_none()
    }

    /// True if each node has a processor of its own.
    pub(crate) fn has_processor(&self) -> bool {
        !self.service.is_none()
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
        let waiting = Waiting::new(Arc::new(WaitSlots::new()), true, false);
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
        let waiting = Waiting::new(Arc::new(WaitSlots::new()), false, false);
        assert!(!waiting.polls());
        assert_eq!(waiting.spin_for(event::PASSED).now(), Duration::ZERO);
    }
}
