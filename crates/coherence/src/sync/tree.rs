//! The tree along which the nodes of a barrier report.

use gondwana_topology::NodeId;

/// How many children a node has in a barrier's tree.
///
/// A parent handles the messages of its children one after the other, a fraction of a microsecond each, while
/// another level costs a whole message on its way, some microseconds. With 8 children 9 nodes meet in one step
/// each way and 73 in two, and nobody receives more than 8 messages.
pub const FAN_IN: u16 = 8;

/// One node's place in the tree over all nodes that has a given root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tree {
    pub me: NodeId,
    pub nodes: u16,
    pub fan_in: u16,
}

impl Tree {
    /// Whom `node` reports to; `None` for the root. Nodes are ranked from the root on, and the children of rank
    /// `r` follow each other from `r * fan_in + 1`.
    #[inline]
    pub(super) fn parent_of(self, node: NodeId, root: NodeId) -> Option<NodeId> {
        // Asked several times for each arrival, so without a division where it can be.
        let (Self { nodes, fan_in, .. }, NodeId(node), NodeId(root)) = (self, node, root);
        let rank = if node < root { nodes - (root - node) } else { node - root };
        let before = rank.checked_sub(1)?;
        let parent = if before < fan_in { 0 } else { before / fan_in };
        // So many nodes have their ranks before node 0 has its.
        let first = nodes - root;
        Some(NodeId(if parent < first { parent + root } else { parent - first }))
    }

    /// Whom this node reports to; `None` at the root.
    #[inline]
    pub(super) fn parent(self, root: NodeId) -> Option<NodeId> {
        self.parent_of(self.me, root)
    }

    /// True if `node` reports to this one.
    pub(super) fn is_child(self, node: NodeId, root: NodeId) -> bool {
        node.0 < self.nodes && self.parent_of(node, root) == Some(self.me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_reaches_the_root_and_nobody_has_too_many_children() {
        for (nodes, fan_in) in [(1, 8), (2, 8), (9, 8), (10, 8), (64, 8), (7, 2), (5, 1)] {
            for root in (0..nodes).map(NodeId) {
                let tree = |node| Tree { me: NodeId(node), nodes, fan_in };
                let mut deepest = 0;
                for node in (0..nodes).map(NodeId) {
                    let mut steps = 0;
                    let mut at = node;
                    while let Some(parent) = tree(at.0).parent(root) {
                        assert!(tree(parent.0).is_child(at, root));
                        (at, steps) = (parent, steps + 1);
                    }
                    assert_eq!(at, root);
                    deepest = deepest.max(steps);
                    let children = (0..nodes).filter(|&other| tree(node.0).is_child(NodeId(other), root));
                    assert!(children.count() <= usize::from(fan_in));
                }
                if fan_in == FAN_IN {
                    assert_eq!(deepest, [0, 1, 2][usize::from(nodes > 1) + usize::from(nodes > 9)]);
                }
            }
        }
    }
}
