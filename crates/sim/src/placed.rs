//! Memory that a plan places, apart from the policy for all other memory.

use crate::machine::Machine;
use gondwana_coherence::directory::Node;
use gondwana_page::PAGE_SIZE;
use gondwana_rset::Placement;
use gondwana_topology::NodeId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What a placement divides: its first address, and its length in pages of [`PAGE_SIZE`], which is the unit of plans.
#[derive(Clone, Debug)]
struct Region {
    start: u64,
    pages: u64,
    placement: Arc<Placement>,
}

/// Regions by the machine's pages, which may be longer than those of plans.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// Bytes of the machine's pages.
    page_bytes: u64,
    /// First page, and the one behind the last. They do not overlap.
    ranges: BTreeMap<u64, (u64, Region)>,
}

impl Placed {
    pub(crate) fn new(page_bytes: u64) -> Self {
        Self { page_bytes, ranges: BTreeMap::new() }
    }

    /// Pages of these addresses go where a placement says, whatever was said about them before.
    fn insert(&mut self, addresses: &Range<u64>, placement: Arc<Placement>) {
        if addresses.is_empty() {
            return;
        }
        let unit = PAGE_SIZE as u64;
        let start = addresses.start / unit * unit;
        let region = Region { start, pages: (addresses.end - start).div_ceil(unit), placement };
        let (first, end) = (addresses.start / self.page_bytes, addresses.end.div_ceil(self.page_bytes));
        while let Some((&from, &(to, _))) = self.ranges.range(..end).next_back()
            && to > first
        {
            let (to, before) = self.ranges.remove(&from).expect("it was found");
            if to > end {
                self.ranges.insert(end, (to, before.clone()));
            }
            if from < first {
                self.ranges.insert(from, (first, before));
            }
        }
        self.ranges.insert(first, (end, region));
    }

    /// The home of a page that a node touches first; none if nothing was said about it.
    pub(crate) fn home(&self, page: u64, touching: Node) -> Option<Node> {
        let (_, (end, region)) = self.ranges.range(..=page).next_back()?;
        if page >= *end {
            return None;
        }
        let index = (page * self.page_bytes).saturating_sub(region.start) / PAGE_SIZE as u64;
        let node = region.placement.node_of(index, region.pages, NodeId(touching.into()))?;
        Some(Node::try_from(node.0).expect("machines are checked"))
    }
}

impl Machine {
    /// Has pages at these addresses be where a placement says, which divides them in pages of [`PAGE_SIZE`]: a page of the
    /// machine goes where its first part does. A page that was touched before stays.
    pub fn place_memory(&mut self, addresses: &Range<u64>, placement: Arc<Placement>) {
        self.placed.insert(addresses, placement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_rset::{MemoryPolicy, PlacementPart, RSet};
    use gondwana_topology::Bytes;

    fn machine() -> gondwana_topology::Machine {
        gondwana_topology::Machine::uniform(4, 1, Bytes(1 << 30))
    }

    fn by(policy: MemoryPolicy) -> Arc<Placement> {
        Arc::new(Placement::new(policy, &RSet::global(&machine()), &machine()).unwrap())
    }

    fn homes(placed: &Placed, pages: Range<u64>) -> Vec<Option<Node>> {
        pages.map(|page| placed.home(page, 3)).collect()
    }

    #[test]
    fn regions_are_divided_in_pages_of_plans() {
        let mut placed = Placed::new(8192);
        placed.insert(&(0x1_0000..0x1_8000), by(MemoryPolicy::Block));
        assert_eq!(homes(&placed, 7..13), [None, Some(0), Some(1), Some(2), Some(3), None]);
        let parts = [(3, 1), (1, 2)].map(|(pages, node)| PlacementPart { pages, node: NodeId(node) });
        let parts = Placement::of_parts(&parts, &RSet::global(&machine()), &machine()).unwrap();
        // From the second half of a page of the machine on: its first part in the region counts.
        placed.insert(&(0x2_1000..0x2_6000), Arc::new(parts));
        assert_eq!(homes(&placed, 16..20), [Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn what_is_said_later_counts() {
        let mut placed = Placed::new(4096);
        let to = |node: u16| by(MemoryPolicy::Explicit([NodeId(node)].into_iter().collect()));
        placed.insert(&(0..0x8000), to(0));
        placed.insert(&(0x2000..0x4000), to(1));
        placed.insert(&(0x6000..0xa000), by(MemoryPolicy::Local));
        let expected = [0, 0, 1, 1, 0, 0, 3, 3, 3, 3].map(Some);
        assert_eq!(homes(&placed, 0..10), expected);
        placed.insert(&(0..0xa000), to(2));
        assert_eq!(homes(&placed, 0..10), [Some(2); 10]);
        assert_eq!(placed.ranges.len(), 1);
        placed.insert(&(0..0), to(2));
        assert_eq!(placed.home(10, 0), None);
    }
}
