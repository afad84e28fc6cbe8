//! Where blocks can be: arithmetic that every node can do for every node's part.

use super::class::{CLASSES, Class};
use gondwana_topology::{MAX_NODES, NodeId};
use std::ops::Range;

/// Bytes in a slab, and what the addresses of slabs are multiples of.
pub(super) const SLAB_BYTES: usize = 1 << SLAB_SHIFT;
pub(super) const SLAB_SHIFT: u32 = 16;

/// How the heap's addresses are divided among the nodes.
///
/// Node `n` has the `bytes_per_node` bytes from `base + n * bytes_per_node` on, its *part*, and only that node
/// hands out blocks of it. Up to a quarter of a part are *class regions*, one for each size class and all of one
/// size, so that an address alone tells the size of a small block; the rest is for pages and large blocks, and for
/// slabs of classes whose region is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    base: usize,
    bytes_per_node: usize,
    nodes: usize,
    /// Class regions are `1 << region_shift` bytes long; `None` if a part is too small to have them.
    region_shift: Option<u32>,
}

/// The place of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the region of a size class.
    Region(Class),
    /// In the rest of a part.
    Rest,
}

impl Layout {
    /// Divides the `nodes * bytes_per_node` bytes from `base` on.
    ///
    /// # Panics
    /// If `base` or `bytes_per_node` is no positive multiple of 64 KiB, the end is no address, or `nodes` is not
    /// between 1 and [`MAX_NODES`].
    #[must_use]
    pub fn new(base: usize, bytes_per_node: usize, nodes: usize) -> Self {
        assert!(base > 0 && base.is_multiple_of(SLAB_BYTES), "the base is no multiple of 64 KiB");
        assert!(
            bytes_per_node > 0 && bytes_per_node.is_multiple_of(SLAB_BYTES),
            "a part is no multiple of 64 KiB"
        );
        assert!((1..=MAX_NODES).contains(&nodes), "{nodes} nodes");
        let end = bytes_per_node.checked_mul(nodes).and_then(|bytes| base.checked_add(bytes));
        assert!(end.is_some(), "the parts end beyond the last address");
        let region_shift =
            (bytes_per_node / 4 / CLASSES).checked_ilog2().filter(|&shift| shift >= SLAB_SHIFT);
        Self { base, bytes_per_node, nodes, region_shift }
    }

    /// The node whose part holds an address; `None` if the address is outside all parts.
    #[must_use]
    pub fn owner(&self, address: usize) -> Option<NodeId> {
        let index = address.checked_sub(self.base)? / self.bytes_per_node;
        u16::try_from(index).ok().filter(|_| index < self.nodes).map(NodeId)
    }

    /// First address of a node's part.
    #[must_use]
    pub fn part(&self, node: NodeId) -> usize {
        self.base + node.index() * self.bytes_per_node
    }

    /// First address in a node's part of pages and large blocks, behind the regions of small ones.
    #[must_use]
    pub fn rest(&self, node: NodeId) -> usize {
        self.part(node) + CLASSES * self.region_bytes()
    }

    /// The class regions of a node, which fill up from their start, and log2 of the bytes of one. `None` if a part is
    /// too small for them.
    #[must_use]
    pub fn regions(&self, node: NodeId) -> Option<(Range<usize>, u32)> {
        self.region_shift.map(|shift| (self.part(node)..self.rest(node), shift))
    }

    /// Bytes in a block of each of the [regions](Self::regions), in their order.
    pub fn block_sizes(&self) -> impl Iterator<Item = usize> + use<> {
        (0..CLASSES).filter_map(Class::from_index).map(Class::size)
    }

    /// Bytes in each node's part.
    #[must_use]
    pub fn bytes_per_node(&self) -> usize {
        self.bytes_per_node
    }

    /// How many nodes have parts.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Bytes in each class region, 0 if there are none.
    pub(super) fn region_bytes(&self) -> usize {
        self.region_shift.map_or(0, |shift| 1 << shift)
    }

    /// What is at `offset` in a part.
    pub(super) fn place(&self, offset: usize) -> Place {
        let index = self.region_shift.map_or(CLASSES, |shift| offset >> shift);
        Class::from_index(index).map_or(Place::Rest, Place::Region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another() {
        let layout = Layout::new(0x10_0000, 0x2_0000, 3);
        assert_eq!(layout.owner(0xf_ffff), None);
        assert_eq!(layout.owner(0x10_0000), Some(NodeId(0)));
        assert_eq!(layout.owner(0x13_ffff), Some(NodeId(1)));
        assert_eq!(layout.owner(0x15_ffff), Some(NodeId(2)));
        assert_eq!(layout.owner(0x16_0000), None);
        assert_eq!(layout.part(NodeId(2)), 0x14_0000);
        assert_eq!(layout.place(0), Place::Rest, "too small for class regions");
        assert_eq!(layout.regions(NodeId(0)), None);
    }

    #[test]
    fn regions_take_at_most_a_quarter() {
        for shift in 20..45 {
            let layout = Layout::new(SLAB_BYTES, 1 << shift, 1);
            assert!(layout.region_bytes() * CLASSES <= 1 << (shift - 2));
            if layout.region_bytes() > 0 {
                assert_eq!(layout.place(0), Place::Region(Class::from_index(0).unwrap()));
                let last = layout.region_bytes() * CLASSES;
                let regions = SLAB_BYTES..SLAB_BYTES + last;
                assert_eq!(layout.regions(NodeId(0)), Some((regions, layout.region_bytes().ilog2())));
                assert_eq!(layout.place(last - 1), Place::Region(Class::from_index(CLASSES - 1).unwrap()));
                assert_eq!(layout.place(last), Place::Rest);
                assert_eq!(layout.rest(NodeId(0)), layout.part(NodeId(0)) + last);
            }
        }
    }
}
