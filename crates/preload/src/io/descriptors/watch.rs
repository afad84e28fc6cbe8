//! Waiting for descriptors of another node beside other things: a thread of this node waits for the node's answer, and then makes an
//! event readable.

use super::there::There;
use crate::io::Buffer;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Thread, WaitSlot};
use gondwana_sys::Argument;
use libc::{c_int, pollfd};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How soon the end of a wait is asked for again.
const REPEAT: Duration = Duration::from_millis(5);

impl There {
    /// `poll` by the node that has all of these descriptors open. `None` after a failure.
    pub(super) fn poll(&self, set: &mut [pollfd], timeout: c_int) -> Option<usize> {
        let words = [set.as_mut_ptr().word(), set.len().word(), timeout.word()];
        let count: c_int = self.call("poll", &words, &[Buffer::write(set.as_mut_ptr(), size_of_val(set))]);
        usize::try_from(count).ok()
    }
}

/// How far a watch is.
enum Progress {
    /// Its thread has not begun; true if it need not.
    Begins(bool),
    /// Its thread waits there.
    Waits(WaitSlot),
    /// It is over, with what `poll` has told.
    Over(Vec<pollfd>),
}

/// A wait for descriptors of another node.
pub(super) struct Watch {
    there: There,
    state: Arc<(Mutex<Progress>, Condvar)>,
}

impl Watch {
    /// Begins to wait for these descriptors, and calls `notify` once when one of them is ready or the wait has failed.
    pub(super) fn begin(there: There, mut set: Vec<pollfd>, notify: impl FnOnce() + Send + 'static) -> Self {
        let state = Arc::new((Mutex::new(Progress::Begins(false)), Condvar::new()));
        let watch = Self { there, state: Arc::clone(&state) };
        let wait = move || {
            let (progress, over) = &*state;
            let slot = Thread::current(there.node).slot;
            there.node.forget_interruption(slot);
            let wanted = {
                let mut progress = lock(progress);
                let wanted = !matches!(*progress, Progress::Begins(true));
                *progress = Progress::Waits(slot);
                wanted
            };
            if !wanted || there.poll(&mut set, -1).is_none() {
                set.iter_mut().for_each(|one| one.revents = 0);
            }
            *lock(progress) = Progress::Over(set);
            over.notify_all();
            // Afterwards: whoever is notified begins another watch if this one is over.
            notify();
        };
        // The threads that wait for something to do have a lock.
        uninterrupted(|| there.node.in_background(wait));
        watch
    }

    /// True if it has notified.
    pub(super) fn is_over(&self) -> bool {
        matches!(*lock(&self.state.0), Progress::Over(_))
    }

    /// Ends it, and says what is ready now.
    pub(super) fn end(self) -> Vec<pollfd> {
        let mut set = loop {
            if let Some(set) = uninterrupted(|| self.ended()) {
                break set;
            }
        };
        if set.iter().all(|one| one.revents == 0) {
            self.there.poll(&mut set, 0);
        }
        set
    }

    /// What it has told, if it is over. Otherwise asks for its end, and waits for that for a moment.
    fn ended(&self) -> Option<Vec<pollfd>> {
        let (progress, over) = &*self.state;
        let mut progress = lock(progress);
        match &mut *progress {
            Progress::Over(set) => return Some(std::mem::take(set)),
            Progress::Begins(unwanted) => *unwanted = true,
            Progress::Waits(slot) => self.there.node.interrupt(*slot),
        }
        drop(over.wait_timeout(progress, REPEAT));
        None
    }
}
