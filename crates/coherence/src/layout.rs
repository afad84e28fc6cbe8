//! Which node manages which page.

use crate::Page;
use gondwana_topology::{NodeId, NodeSet};
use serde::{Deserialize, Serialize};

/// How the pages of one region are dealt out to their managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Managers {
    /// Node 0 manages the first `per_node` pages of the region, node 1 the next ones, and so on; the last node
    /// also manages what is left over.
    Even {
        /// Pages per node; at least 1.
        per_node: u32,
    },
    /// One node manages the whole region.
    Node(NodeId),
}

/// A run of pages whose managers follow one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// The first page of the region.
    pub first: Page,
    /// How many pages it has.
    pub count: u32,
    /// Who manages them.
    pub managers: Managers,
}

/// The machine as a protocol sees it: its nodes, this node, and the manager of each page.
///
/// The manager of a page is fixed for the whole run and known to every node without asking. It is the page's home
/// until the page is first touched (`csm`), or the node that orders all requests for it (`sc`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layout {
    nodes: u16,
    me: NodeId,
    page_size: u32,
    regions: Vec<Region>,
}

impl Layout {
    /// A machine of `nodes` nodes as seen by node `me`, with coherence by units of `page_size` bytes: the pages. The regions must
    /// begin at page 0 and follow each other without a gap, and be the same on every node.
    ///
    /// # Panics
    /// If the regions leave a gap or overlap, name a node that doesn't exist, or deal out no page per node.
    #[must_use]
    pub fn new(nodes: u16, me: NodeId, page_size: u32, regions: Vec<Region>) -> Self {
        assert!(me.0 < nodes, "node {me} of {nodes}");
        assert!(page_size > 0, "a page must hold something");
        let mut next = 0u32;
        for region in &regions {
            assert_eq!(region.first.0, next, "a region must begin where the one before it ends");
            next = next.checked_add(region.count).expect("page numbers have 32 bits");
            match region.managers {
                Managers::Even { per_node } => assert!(per_node > 0, "a node must manage something"),
                Managers::Node(node) => assert!(node.0 < nodes, "manager {node} of {nodes} nodes"),
            }
        }
        Self { nodes, me, page_size, regions }
    }

    /// The same machine as seen by another node.
    ///
    /// # Panics
    /// If it doesn't exist.
    #[must_use]
    pub fn seen_by(&self, me: NodeId) -> Self {
        assert!(me.0 < self.nodes, "node {me} of {}", self.nodes);
        Self { me, ..self.clone() }
    }

    /// How many nodes the machine has.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// This node.
    #[must_use]
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// The only other node, if there are two: all that its threads learn from this node, they learn from messages to it.
    #[must_use]
    pub fn only_peer(&self) -> Option<NodeId> {
        (self.nodes == 2).then(|| NodeId(1 - self.me.0))
    }

    /// All nodes but this one.
    #[must_use]
    pub(crate) fn others(&self) -> NodeSet {
        (0..self.nodes).map(NodeId).filter(|&node| node != self.me).collect()
    }

    /// How many pages the span has.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.regions.last().map_or(0, |region| region.first.0 + region.count)
    }

    /// Bytes of a page: the unit of coherence.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.page_size as usize
    }

    /// True if these are the contents of so many pages.
    #[must_use]
    pub(crate) fn are_contents(&self, bytes: &[u8], pages: u32) -> bool {
        bytes.len() as u64 == u64::from(pages) * u64::from(self.page_size)
    }

    /// The node that manages `page`; a page outside the span counts as node 0's.
    #[must_use]
    pub fn manager(&self, page: Page) -> NodeId {
        for region in &self.regions {
            if page.0 - region.first.0 < region.count {
                return match region.managers {
                    Managers::Node(node) => node,
                    Managers::Even { per_node } => {
                        let share = (page.0 - region.first.0) / per_node;
                        NodeId(u16::try_from(share).unwrap_or(u16::MAX).min(self.nodes - 1))
                    }
                };
            }
        }
        NodeId(0)
    }

    /// How many pages from `first` on, at most `count`, are inside the span.
    #[must_use]
    pub(crate) fn clip(&self, first: Page, count: u32) -> u32 {
        count.min(self.pages().saturating_sub(first.0))
    }

    /// True if `count` pages from `first` (at least one) are inside the span.
    #[must_use]
    pub(crate) fn holds(&self, first: Page, count: u32) -> bool {
        count > 0 && self.clip(first, count) == count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_manager() {
        let regions = vec![
            Region { first: Page(0), count: 10, managers: Managers::Even { per_node: 3 } },
            Region { first: Page(10), count: 2, managers: Managers::Node(NodeId(1)) },
        ];
        let layout = Layout::new(3, NodeId(2), 64, regions);
        let managers: Vec<u16> = (0..12).map(|page| layout.manager(Page(page)).0).collect();
        assert_eq!(managers, [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 1, 1]);
        assert_eq!(layout.pages(), 12);
        assert!(layout.are_contents(&[0; 128], 2) && !layout.are_contents(&[0; 128], 1));
        assert_eq!(layout.clip(Page(10), 5), 2);
        assert!(layout.holds(Page(11), 1) && !layout.holds(Page(11), 2) && !layout.holds(Page(3), 0));
        assert!(!layout.holds(Page(u32::MAX), 2));
    }

    #[test]
    #[should_panic(expected = "begin where the one before it ends")]
    fn a_gap_between_regions_is_refused() {
        let managers = Managers::Node(NodeId(0));
        let _ = Layout::new(
            1,
            NodeId(0),
            64,
            vec![
                Region { first: Page(0), count: 1, managers },
                Region { first: Page(2), count: 1, managers },
            ],
        );
    }
}
