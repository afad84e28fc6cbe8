//! The wait of a home for a node that has locked one of its pages.
//!
//! A node locks a page for one system call. It may take longer: the node may have no processor, or be stopped in a
//! debugger. So the home first spins, then yields, then sleeps, for longer and longer. After [`REPORTED`] the
//! launcher is told which node it is, because a user may have stopped it. The wait has no timeout: a node that dies
//! ends the run, and one that is stopped may continue.

use super::primitive::relax;
use std::time::Duration;

/// Spins before the first yield.
const LOOKS: u32 = 64;

/// Yields before the first sleep: a node that has a processor has finished by then.
const YIELDS: u32 = 16;

/// The first and the longest sleep. The kernel cannot sleep for less than the first.
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);

/// The wait after which the home reports. Time in which the home itself was stopped does not count.
pub(super) const REPORTED: Duration = Duration::from_secs(5);

/// One wait.
#[derive(Default)]
pub(super) struct Wait {
    looks: u32,
    yields: u32,
    sleep: Duration,
    /// The time slept so far.
    waited: Duration,
    reported: bool,
}

impl Wait {
    /// Waits for a while, by `rest`, which returns the time that counts. True once, when the sum reaches
    /// [`REPORTED`].
    pub(super) fn go_on(&mut self, rest: &mut dyn FnMut(Duration) -> Duration) -> bool {
        if self.looks < LOOKS {
            self.looks += 1;
            relax();
            return false;
        }
        if self.yields < YIELDS {
            (self.looks, self.yields) = (0, self.yields + 1);
        } else {
            self.sleep = (2 * self.sleep).clamp(SHORTEST, LONGEST);
        }
        self.waited += rest(self.sleep);
        let is_long = self.waited >= REPORTED;
        is_long && !std::mem::replace(&mut self.reported, true)
    }
}
