//! Where caches get slabs from and give them back to.

use super::SlabWatcher;
use super::bins::{Bins, SlabSource};
use super::class::{CLASSES, Class};
use super::extents::{Extents, Purpose};
use super::inbox::{Inbox, Inboxes};
use super::layout::{Layout, SLAB_BYTES};
use super::slab::{CacheId, Slab};
use super::slab_table::SlabTable;
use crate::PAGE_SIZE;
use gondwana_locks::lock;
use std::sync::{Arc, Mutex, OnceLock};

/// Slabs without a cache, and the source of new slabs.
#[derive(Debug)]
struct Store {
    /// Slabs without a live block, by class.
    empty: Box<[Vec<Arc<Slab>>]>,
    /// How many bytes of each class region have become slabs.
    used: [usize; CLASSES],
}

/// The shared state of the caches of a node. Locks are taken in the order of the fields.
#[derive(Debug)]
pub(super) struct Supply {
    layout: Layout,
    base: usize,
    /// The slabs of dropped caches; the next cache inherits them.
    idle: Mutex<Vec<Bins>>,
    store: Mutex<Store>,
    pub extents: Mutex<Extents>,
    pub inboxes: Inboxes,
    /// The owner of the empty slabs in the store.
    nobody: (CacheId, Arc<Inbox>),
    pub table: SlabTable,
    /// Is called for new slabs.
    pub watcher: OnceLock<SlabWatcher>,
}

impl Supply {
    /// All of the part that begins at `base` is free.
    pub(super) fn new(layout: Layout, base: usize) -> Self {
        let inboxes = Inboxes::default();
        let rest = base + layout.region_bytes() * CLASSES;
        let end = base + layout.bytes_per_node();
        Self {
            layout,
            base,
            idle: Mutex::default(),
            store: Mutex::new(Store { empty: vec![Vec::new(); CLASSES].into(), used: [0; CLASSES] }),
            extents: Mutex::new(Extents::new(rest / PAGE_SIZE, end / PAGE_SIZE)),
            nobody: inboxes.add(),
            inboxes,
            table: SlabTable::new(layout.bytes_per_node()),
            watcher: OnceLock::new(),
        }
    }

    /// The slabs for a new cache: those of a dropped cache if there is one.
    pub(super) fn bins(&self) -> Bins {
        let inherited = lock(&self.idle).pop();
        inherited.unwrap_or_else(|| {
            let (id, inbox) = self.inboxes.add();
            Bins::new(id, inbox)
        })
    }

    /// Keeps the slabs of a cache that ends.
    pub(super) fn retire(&self, mut bins: Bins) {
        bins.settle(self);
        lock(&self.idle).push(bins);
    }

    fn empty_slab(&self, class: Class, owner: CacheId) -> Option<Arc<Slab>> {
        let slab = lock(&self.store).empty[class.index()].pop()?;
        self.nobody.1.hand_over(&slab, owner);
        Some(slab)
    }

    /// Searches the slabs of dropped caches. Returned blocks may also have made slabs empty.
    fn inherited_slab(&self, class: Class, owner: CacheId) -> Option<Arc<Slab>> {
        lock(&self.idle).iter_mut().find_map(|bins| {
            bins.read_inbox(self);
            bins.part_with(class, owner)
        })
    }

    fn new_slab(&self, class: Class, owner: CacheId) -> Option<Arc<Slab>> {
        let (address, fresh) = self.room_in_region(class).map(|address| (address, true)).or_else(|| {
            let pages = SLAB_BYTES / PAGE_SIZE;
            let run = lock(&self.extents).take(pages, pages, Purpose::Slab)?;
            Some((run.start * PAGE_SIZE, run.fresh))
        })?;
        let slab = Arc::new(Slab::new(address, class, owner, fresh));
        self.table.enter(address - self.base, Arc::clone(&slab));
        if let Some(tell) = self.watcher.get() {
            tell(address..address + SLAB_BYTES, fresh);
        }
        Some(slab)
    }

    fn room_in_region(&self, class: Class) -> Option<usize> {
        let region = self.layout.region_bytes();
        let used = &mut lock(&self.store).used[class.index()];
        if *used == region {
            return None;
        }
        let address = self.base + class.index() * region + *used;
        *used += SLAB_BYTES;
        Some(address)
    }
}

impl SlabSource for Supply {
    /// An empty one, else one of a dropped cache, else a new one.
    fn slab(&self, class: Class, owner: CacheId) -> Option<Arc<Slab>> {
        self.empty_slab(class, owner)
            .or_else(|| self.inherited_slab(class, owner))
            .or_else(|| self.empty_slab(class, owner))
            .or_else(|| self.new_slab(class, owner))
    }

    fn give_back(&self, slab: &Arc<Slab>, inbox: &Inbox) {
        inbox.hand_over(slab, self.nobody.0);
        lock(&self.store).empty[slab.class().index()].push(Arc::clone(slab));
    }
}
