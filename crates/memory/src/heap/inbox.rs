//! Messages to the owner of slabs: the slabs to which other threads returned blocks.

use super::slab::{CacheId, Returned, Slab};
use gondwana_locks::{lock, read, write};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// The slabs of one owner to which blocks were returned since its last check.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Vec<Arc<Slab>>>);

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Slab>>> {
        // Nothing that runs under the lock leaves the list half changed.
        lock(&self.0)
    }

    /// Takes all messages. The owner still has to collect.
    pub(super) fn take(&self) -> Vec<Arc<Slab>> {
        std::mem::take(&mut self.lock())
    }

    /// Makes `to` the owner of a slab that the caller, the owner of this inbox, has.
    pub(super) fn hand_over(&self, slab: &Arc<Slab>, to: CacheId) {
        let mut messages = self.lock();
        // The former owner would ignore a message about it, but keep a reference for long. A message under way
        // reaches the new owner.
        messages.retain(|other| !Arc::ptr_eq(other, slab));
        slab.collect();
        slab.set_owner(to);
    }
}

/// The inboxes of all caches, dead and alive, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Inboxes(RwLock<Vec<Arc<Inbox>>>);

impl Inboxes {
    /// Makes an inbox for a new owner.
    pub(super) fn add(&self) -> (CacheId, Arc<Inbox>) {
        let mut all = write(&self.0);
        let inbox = Arc::new(Inbox::default());
        all.push(Arc::clone(&inbox));
        (CacheId::try_from(all.len() - 1).expect("caches have numbers of 32 bits"), inbox)
    }

    /// Returns a block on behalf of a thread that does not own the slab; false if it was not live.
    pub(super) fn put(&self, slab: &Arc<Slab>, block: u16) -> bool {
        match slab.put_from_outside(block) {
            Returned::NotLive => return false,
            Returned::Freed => return true,
            Returned::Announce => {}
        }
        let all = read(&self.0);
        loop {
            let owner = slab.owner();
            let mut messages = all[owner as usize].lock();
            // Owners change under this lock only: if the owner is still the same, the message reaches it.
            if slab.owner() == owner {
                messages.push(Arc::clone(slab));
                return true;
            }
        }
    }
}
