//! The wait of a home for a node that holds one of its pages.
//!
//! A node holds a page for one system call. It may be longer: it may have no processor, where nodes outnumber them, or
//! be stopped, as in a debugger. So the home looks again for a moment, then leaves the processor to others, for longer
//! and longer. After [`REPORTED`] the launcher is told which node it is, because a user may have stopped it. The wait has
//! no end of its own: a node that dies ends the run, and one that is stopped may go on.

use super::primitive::relax;
use std::time::Duration;

/// How often to look before letting others run.
const LOOKS: u32 = 64;

/// How often to let others run before sleeping: a node that has a processor is through by then.
const YIELDS: u32 = 16;

/// How long to sleep at first, and at last. Less than the first the kernel cannot do.
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);

/// How long the home waits before it reports that. The time during which it stands still itself does not count.
pub(super) const REPORTED: Duration = Duration::from_secs(5);

/// One wait.
#[derive(Default)]
pub(super) struct Wait {
    looks: u32,
    yields: u32,
    sleep: Duration,
    /// How long it has been, as far as it was slept.
    waited: Duration,
    reported: bool,
}

impl Wait {
    /// The page is still held: waits for a while, by `rest`, which returns the time that counts. True once, when it has been
    /// [`REPORTED`].
    pub fn go_on(&mut self, rest: &mut dyn FnMut(Duration) -> Duration) -> bool {
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
