//! Finds the slab at an address of this node's part.

use super::layout::{SLAB_BYTES, SLAB_SHIFT};
use super::slab::Slab;
use std::sync::{Arc, OnceLock};

/// Slabs in a leaf: 16 MiB of addresses.
const LEAF: usize = 256;

type Leaf = Box<[OnceLock<Arc<Slab>>]>;

/// A table in two levels. A place that once holds a slab holds it for good, so looking up takes no lock.
#[derive(Debug)]
pub(super) struct SlabTable(Box<[OnceLock<Leaf>]>);

impl SlabTable {
    /// An empty table for a part of that many bytes.
    pub fn new(bytes: usize) -> Self {
        Self((0..bytes.div_ceil(LEAF * SLAB_BYTES)).map(|_| OnceLock::new()).collect())
    }

    /// The slab that holds the address `offset` bytes into the part.
    #[inline]
    pub fn get(&self, offset: usize) -> Option<&Arc<Slab>> {
        let index = offset >> SLAB_SHIFT;
        self.0.get(index / LEAF)?.get()?[index % LEAF].get()
    }

    /// Enters a slab that begins `offset` bytes into the part.
    ///
    /// # Panics
    /// If there is one already.
    pub fn enter(&self, offset: usize, slab: Arc<Slab>) {
        let index = offset >> SLAB_SHIFT;
        let leaf = self.0[index / LEAF].get_or_init(|| (0..LEAF).map(|_| OnceLock::new()).collect());
        assert!(leaf[index % LEAF].set(slab).is_ok(), "two slabs at one address");
    }
}
