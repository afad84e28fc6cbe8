//! What is done once.

use crate::{Node, Thread};
use gondwana_coherence::sync::{ONCE_RUN, Object, Request};
use gondwana_control::Awaited;
use gondwana_locks::{read, write};

impl Node {
    /// The first part of `pthread_once`: true if the caller must run the routine. `marked` tells whether the
    /// object's memory bears the mark of a routine that was run.
    pub fn once_enter(&'static self, once: usize, marked: impl Fn() -> bool) -> bool {
        let known = |node: &Self| read(&node.sync.onces).get(&once).copied().unwrap_or(0);
        let mut stale = 0;
        if known(self) != 0 && marked() {
            return false;
        }
        loop {
            let object = Object(once as u64);
            let slot = Thread::current(self).slot;
            let noted = self.note_wait(slot, Awaited::Once, object.0, None);
            let answer = self.request(once, Request::OnceEnter { once: object, stale }).unwrap_or(ONCE_RUN);
            drop(noted);
            self.acquire(Some(object));
            let Some(generation) = u32::try_from(answer).ok().filter(|_| answer != ONCE_RUN) else {
                return true;
            };
            if marked() {
                write(&self.sync.onces).insert(once, generation);
                return false;
            }
            stale = generation;
        }
    }

    /// The routine was run, and the object's memory bears the mark.
    pub fn once_done(&'static self, once: usize) {
        self.release(Some(Object(once as u64)));
        let _ = self.request(once, Request::OnceDone { once: Object(once as u64) });
    }

    /// The routine ended by an exception.
    pub fn once_failed(&'static self, once: usize) {
        self.release(Some(Object(once as u64)));
        let _ = self.request(once, Request::OnceFailed { once: Object(once as u64) });
    }
}
