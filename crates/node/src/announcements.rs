//! What a thread announces to threads of several nodes at once: the work of an OpenMP region. It costs a message for each node,
//! where a barrier and shared memory that says what is to be done cost a message and a page.

use crate::wait_slots::{WaitSlot, event};
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_locks::lock;
use gondwana_topology::NodeSet;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The number of an announcement among those of its name, from 1 on, and what it says.
pub type Announcement = (u64, Arc<[u64]>);

/// The last announcements of each name that this node has heard.
#[derive(Default)]
pub(crate) struct Announcements {
    known: Mutex<HashMap<u64, Known>>,
}

/// What is known of one name.
#[derive(Default)]
struct Known {
    last: Option<Announcement>,
    /// Threads of this node that wait for the next one.
    waiting: Vec<WaitSlot>,
}

impl Announcements {
    /// An announcement is made; returns the threads that wait for it.
    fn put(&self, name: u64, number: u64, words: Arc<[u64]>) -> Vec<WaitSlot> {
        let mut known = lock(&self.known);
        let known = known.entry(name).or_default();
        known.last = Some((number, words));
        std::mem::take(&mut known.waiting)
    }

    /// The last announcement after the one with the number `after`. If there is none yet, `slot` is returned by the
    /// [`Announcements::put`] of the next one.
    fn after(&self, name: u64, after: u64, slot: WaitSlot) -> Option<Announcement> {
        let mut known = lock(&self.known);
        let known = known.entry(name).or_default();
        let next = known.last.as_ref().filter(|(number, _)| *number > after).cloned();
        if next.is_none() {
            known.waiting.push(slot);
        }
        next
    }
}

impl Node {
    /// Announces `words` to the threads of some nodes that wait for it under a name, which is an address of shared memory. What the
    /// calling thread has written before, they see. Numbers increase from 1 on. A thread that is late finds the last
    /// announcement to its node only: the caller makes another one when all whom it concerns have had this one.
    pub fn announce(&'static self, to: NodeSet, name: usize, number: u64, words: Vec<u64>) {
        self.release(None);
        self.privately(move || {
            let name = name as u64;
            {
                let mut core = self.core();
                for node in to.iter().filter(|node| *node != self.me) {
                    core.publish(node, &Wire::Announce { name, number, words: words.clone() });
                }
            }
            self.announced(name, number, words);
        });
    }

    /// An announcement of this or another node.
    pub(crate) fn announced(&'static self, name: u64, number: u64, words: Vec<u64>) {
        for slot in self.announcements.put(name, number, words.into()) {
            self.waiting.slots.announce(slot, event::DONE, 0);
        }
    }

    /// Waits for the first announcement under a name whose number is larger than `after`.
    pub fn await_announcement(&'static self, name: usize, after: u64) -> Announcement {
        self.privately(move || {
            let slot = Thread::current(self).slot;
            let announcement = loop {
                self.waiting.slots.arm(slot, event::ANSWERED);
                match self.announcements.after(name as u64, after, slot) {
                    Some(announcement) => break announcement,
                    None => self.wait(slot, event::DONE, None),
                };
            };
            self.core().acquire(gondwana_coherence::SyncPoint::default());
            announcement
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_hears_of_the_next_announcement_only() {
        let announcements = Announcements::default();
        assert_eq!(announcements.after(7, 0, WaitSlot(1)), None);
        assert_eq!(announcements.after(7, 0, WaitSlot(2)), None);
        assert_eq!(announcements.put(8, 1, [5].into()), []);
        assert_eq!(announcements.put(7, 1, [6].into()), [WaitSlot(1), WaitSlot(2)]);
        assert_eq!(announcements.put(7, 2, [7].into()), [], "they are told once");
        assert_eq!(announcements.after(7, 1, WaitSlot(1)), Some((2, [7].into())));
        assert_eq!(announcements.after(7, 2, WaitSlot(1)), None);
    }
}
