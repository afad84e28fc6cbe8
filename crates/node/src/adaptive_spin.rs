//! How long to poll for a message before going to sleep.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Several times what an idle processor of a virtual machine takes to wake, so that a wait succeeds whose peer has to be
/// woken first. It keeps no other thread waiting: each node has a processor. Less than a second.
pub(crate) const MOST: Duration = Duration::from_millis(1);

/// The same where nodes outnumber the processors: as long as it takes to wake a thread, because threads that receive messages for other nodes
/// may want the processor.
pub(crate) const MOST_IN_CROWD: Duration = Duration::from_micros(100);

/// Going to sleep and being woken costs more than this, so that polling for so long never does harm. Where two nodes talk
/// to each other, one that polls finds the other one still there.
const LEAST: Duration = Duration::from_micros(5);

/// While polling does not pay, one wait in so many tries it nevertheless.
const PROBE: u32 = 64;

/// Adaptive spin limit, learned from recent waits. Where polling is in vain, as on a computer that is busy with other
/// things, or whose nodes share a processor, it is given up soon; it comes back with the first success.
#[derive(Debug)]
pub(crate) struct AdaptiveSpin {
    most: u32,
    nanoseconds: AtomicU32,
    waits: AtomicU32,
}

impl AdaptiveSpin {
    /// Nothing is known yet. Nobody polls for longer than `most`.
    pub(crate) fn new(most: Duration) -> Self {
        let most = most.subsec_nanos();
        Self { most, nanoseconds: AtomicU32::new(most), waits: AtomicU32::new(0) }
    }

    /// True if no thread polls, ever.
    pub(crate) fn is_none(&self) -> bool {
        self.most == 0
    }

    /// How long to poll this time.
    pub(crate) fn now(&self) -> Duration {
        let mut nanoseconds = self.nanoseconds.load(Ordering::Relaxed);
        if nanoseconds < self.most && self.waits.fetch_add(1, Ordering::Relaxed).is_multiple_of(PROBE) {
            nanoseconds = self.most;
        }
        Duration::from_nanos(u64::from(nanoseconds))
    }

    /// Notes whether polling was worth it.
    pub(crate) fn learn(&self, paid: bool) {
        let now = self.nanoseconds.load(Ordering::Relaxed);
        let next = if paid { self.most } else { (now / 2).max(LEAST.subsec_nanos()).min(self.most) };
        if next != now {
            self.nanoseconds.store(next, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_in_vain_is_given_up_but_tried_again() {
        let spin = AdaptiveSpin::new(MOST);
        assert_eq!(spin.now(), MOST);
        for _ in 0..16 {
            spin.learn(false);
        }
        let tried = (0..2 * PROBE).filter(|_| spin.now() == MOST).count();
        assert_eq!(tried, 2);
        spin.learn(true);
        assert_eq!(spin.now(), MOST);
    }

    #[test]
    fn no_thread_polls_where_none_is_to() {
        let spin = AdaptiveSpin::new(Duration::ZERO);
        spin.learn(true);
        assert!(spin.is_none());
        assert_eq!(spin.now(), Duration::ZERO);
    }
}
