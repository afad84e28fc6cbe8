//! The slabs that one cache owns.

use super::class::{CLASSES, Class};
use super::inbox::Inbox;
use super::slab::{CacheId, Slab, Taken};
use std::sync::Arc;

/// [`Slab::listing`] of the slab that blocks are taken from.
const CURRENT: u32 = u32::MAX;
/// [`Slab::listing`] of a slab that was full at the owner's last check, so no bin lists it.
const UNLISTED: u32 = u32::MAX - 1;

/// The slabs of one class, without full ones: they are listed again when one of their blocks is freed.
#[derive(Debug, Default)]
struct Bin {
    current: Option<Arc<Slab>>,
    /// Other slabs with a free block; [`Slab::listing`] is a slab's index here.
    partial: Vec<Arc<Slab>>,
}

/// Where slabs come from and go to.
pub(super) trait SlabSource {
    /// A slab with a free block for the cache `owner`. `None` if there is no room for one.
    fn slab(&self, class: Class, owner: CacheId) -> Option<Arc<Slab>>;
    /// Takes a slab without a live block from the owner of `inbox`.
    fn give_back(&self, slab: &Arc<Slab>, inbox: &Inbox);
}

/// All slabs of one owner, and its inbox.
#[derive(Debug)]
pub(super) struct Bins {
    id: CacheId,
    inbox: Arc<Inbox>,
    by_class: Box<[Bin]>,
}

impl Bins {
    /// No slabs yet.
    pub(super) fn new(id: CacheId, inbox: Arc<Inbox>) -> Self {
        Self { id, inbox, by_class: (0..CLASSES).map(|_| Bin::default()).collect() }
    }

    /// Takes a block from the current slab only.
    #[inline]
    pub(super) fn take(&mut self, class: Class) -> Option<Taken> {
        self.by_class[class.index()].current.as_ref()?.take()
    }

    /// Takes a block after [`Bins::take`] found none. `None` if this node has no room for another slab.
    #[cold]
    pub(super) fn refill_and_take(&mut self, class: Class, source: &impl SlabSource) -> Option<Taken> {
        self.read_inbox(source);
        // The inbox may have contained the current slab.
        if let Some(taken) = self.take(class) {
            return Some(taken);
        }
        let next = match self.by_class[class.index()].partial.pop() {
            Some(slab) => slab,
            None => source.slab(class, self.id)?,
        };
        next.set_listing(CURRENT);
        if let Some(full) = self.by_class[class.index()].current.replace(next) {
            full.set_listing(UNLISTED);
        }
        self.take(class)
    }

    /// As [`Bins::put`] where no list changes, and so no lock is taken; false if nothing was done.
    #[inline]
    pub(super) fn put_at_hand(&mut self, slab: &Slab, block: u16) -> bool {
        let stays = match slab.listing() {
            CURRENT => true,
            UNLISTED => false,
            _ => !slab.is_last(),
        };
        stays && slab.owner() == self.id && slab.put(block)
    }

    /// Returns a block of a slab. `None` if another owner has the slab; false if the block was not live.
    pub(super) fn put(&mut self, slab: &Arc<Slab>, block: u16, source: &impl SlabSource) -> Option<bool> {
        if slab.owner() != self.id {
            return None;
        }
        let freed = slab.put(block);
        if freed && slab.listing() != CURRENT {
            self.list(slab, source);
        }
        Some(freed)
    }

    /// Collects the blocks that other threads returned.
    pub(super) fn read_inbox(&mut self, source: &impl SlabSource) {
        for slab in self.inbox.take() {
            // A slab can be announced twice; after the first time it may have been empty and passed to another owner.
            if slab.owner() == self.id && slab.collect() && slab.listing() != CURRENT {
                self.list(&slab, source);
            }
        }
    }

    /// Lists a slab, not the current one, that has a free block now; passes it on if all its blocks are free.
    fn list(&mut self, slab: &Arc<Slab>, source: &impl SlabSource) {
        let partial = &mut self.by_class[slab.class().index()].partial;
        let listing = slab.listing();
        if slab.is_empty() {
            if listing != UNLISTED {
                partial.swap_remove(listing as usize);
                if let Some(moved) = partial.get(listing as usize) {
                    moved.set_listing(listing);
                }
            }
            source.give_back(slab, &self.inbox);
        } else if listing == UNLISTED {
            slab.set_listing(u32::try_from(partial.len()).expect("fewer slabs than UNLISTED"));
            partial.push(Arc::clone(slab));
        }
    }

    /// Passes on all empty slabs and the current one: no thread will take blocks for a while.
    pub(super) fn settle(&mut self, source: &impl SlabSource) {
        self.read_inbox(source);
        for class in 0..CLASSES {
            if let Some(slab) = self.by_class[class].current.take() {
                slab.set_listing(UNLISTED);
                if slab.free_count() > 0 {
                    self.list(&slab, source);
                }
            }
        }
    }

    /// Passes a slab that has a free block to another owner.
    pub(super) fn part_with(&mut self, class: Class, to: CacheId) -> Option<Arc<Slab>> {
        let slab = self.by_class[class.index()].partial.pop()?;
        self.inbox.hand_over(&slab, to);
        Some(slab)
    }
}
