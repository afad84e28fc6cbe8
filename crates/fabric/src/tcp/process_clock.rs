//! Process time: time during which this process had a processor.
//!
//! On an overloaded computer every process waits for processors, this one like its peers. Taking that for the silence
//! of a peer would end runs that are only slow. So time is counted in steps: of the time between two readings of the
//! clock, at most the usual interval counts.

use std::time::{Duration, Instant};

/// A clock that stops while its process waits for a processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessClock {
    now: Duration,
    looked: Instant,
    step: Duration,
}

impl ProcessClock {
    /// Starts at 0. Between two readings it advances by at most `step`.
    pub(super) fn new(at: Instant, step: Duration) -> Self {
        Self { now: Duration::ZERO, looked: at, step }
    }

    /// Reads the clock at this time; returns the time since the last reading.
    pub(super) fn look(&mut self, at: Instant) -> Duration {
        let passed = at.saturating_duration_since(self.looked).min(self.step);
        self.looked = at;
        self.now += passed;
        passed
    }

    /// The time at the last reading.
    pub(super) fn now(&self) -> Duration {
        self.now
    }
}

/// For how long a peer's computer has left something without an acknowledgement, by process time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// True if data was waiting at the last check.
    waiting: bool,
    silent: Duration,
}

impl Silence {
    /// Checks, `passed` of process time after the last check: `waits` if data waits for an acknowledgement, `come` if
    /// one has come in between. Returns the time without one.
    pub(super) fn look(&mut self, passed: Duration, waits: bool, come: bool) -> Duration {
        self.silent = if self.waiting && waits && !come { self.silent + passed } else { Duration::ZERO };
        self.waiting = waits;
        self.silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(300);

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn time_without_a_processor_does_not_count() {
        let start = Instant::now();
        let mut time = ProcessClock::new(start, STEP);
        assert_eq!(time.look(start + millis(250)), millis(250));
        // Stopped for ten seconds.
        assert_eq!(time.look(start + millis(10_250)), STEP);
        assert_eq!(time.look(start + millis(10_500)), millis(250));
        assert_eq!(time.now(), millis(800));
        // A clock that goes back.
        assert_eq!(time.look(start), Duration::ZERO);
    }

    #[test]
    fn a_peer_is_silent_while_something_waits_and_no_acknowledgement_comes() {
        let mut silence = Silence::default();
        // Sent just before the first check: it has not waited yet.
        assert_eq!(silence.look(millis(250), true, false), Duration::ZERO);
        assert_eq!(silence.look(millis(250), true, false), millis(250));
        assert_eq!(silence.look(millis(250), true, false), millis(500));
        assert_eq!(silence.look(millis(250), true, true), Duration::ZERO);
        assert_eq!(silence.look(millis(250), true, false), millis(250));
        assert_eq!(silence.look(millis(250), false, false), Duration::ZERO);
        assert_eq!(silence.look(millis(250), true, false), Duration::ZERO);
    }

    #[test]
    fn a_silent_peer_of_a_loaded_computer_gets_as_many_looks_as_one_of_an_idle_computer() {
        let start = Instant::now();
        let (mut time, mut silence) = (ProcessClock::new(start, STEP), Silence::default());
        // Each check is two seconds late.
        let looks = (1..)
            .find(|look| silence.look(time.look(start + millis(2250 * look)), true, false) >= millis(1200))
            .unwrap();
        assert_eq!(looks, 5);
    }
}
