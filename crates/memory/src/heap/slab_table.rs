//! Finds the slab at an address of this node's part.

use super::layout::{SLAB_BYTES, SLAB_SHIFT};
use super::slab::Slab;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

/// Slabs in a leaf: 16 MiB of addresses.
const LEAF: usize = 256;

type Leaf = [OnceLock<Arc<Slab>>; LEAF];

/// A table in two levels. An entry never changes once it holds a slab, so lookups take no lock.
///
/// The upper level has an entry for each 16 MiB of a part of terabytes. Entries are null at first, so unused parts
/// cost no memory and no time.
#[derive(Debug)]
pub(super) struct SlabTable(Box<[AtomicPtr<Leaf>]>);

impl SlabTable {
    /// An empty table for a part of that many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let leaves = Box::<[AtomicPtr<Leaf>]>::new_zeroed_slice(bytes.div_ceil(LEAF * SLAB_BYTES));
        // SAFETY: all bytes zero is a null pointer.
        Self(unsafe { leaves.assume_init() })
    }

    /// The slab that holds the address `offset` bytes into the part.
    #[inline]
    pub(super) fn get(&self, offset: usize) -> Option<&Arc<Slab>> {
        let index = offset >> SLAB_SHIFT;
        let leaf = self.0.get(index / LEAF)?.load(Ordering::Acquire);
        // SAFETY: null, or a leaf that lives as long as the table.
        unsafe { leaf.as_ref() }?[index % LEAF].get()
    }

    /// Enters a slab that begins `offset` bytes into the part.
    ///
    /// # Panics
    /// If there is one already.
    pub(super) fn enter(&self, offset: usize, slab: Arc<Slab>) {
        let index = offset >> SLAB_SHIFT;
        let leaf = self.leaf(&self.0[index / LEAF]);
        assert!(leaf[index % LEAF].set(slab).is_ok(), "two slabs at one address");
    }

    /// The leaf at one of the table's places.
    fn leaf(&self, place: &AtomicPtr<Leaf>) -> &Leaf {
        let mut leaf = place.load(Ordering::Acquire);
        if leaf.is_null() {
            let new = Box::into_raw(Box::new([const { OnceLock::new() }; LEAF]));
            leaf = match place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: made above, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    other
                }
            };
        }
        // SAFETY: a leaf, which lives as long as the table.
        unsafe { &*leaf }
    }
}

impl Drop for SlabTable {
    fn drop(&mut self) {
        for leaf in self.0.iter_mut().map(AtomicPtr::get_mut).filter(|leaf| !leaf.is_null()) {
            // SAFETY: made by `Box::into_raw`, and nobody can look it up any more.
            drop(unsafe { Box::from_raw(*leaf) });
        }
    }
}
