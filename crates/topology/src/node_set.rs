use crate::{MAX_NODES, NodeId};
use serde::{Deserialize, Serialize};

const WORDS: usize = MAX_NODES / 64;

/// A set of nodes: the *sharing set* of a page (Cashmere, section 2.1), for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeSet([u64; WORDS]);

impl NodeSet {
    /// The set without members.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The set of one node.
    #[must_use]
    pub fn only(node: NodeId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(node);
        set
    }

    /// Adds a node; true if it was not a member before.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let new = !self.contains(node);
        self.0[node.index() / 64] |= 1 << (node.index() % 64);
        new
    }

    /// Takes a node out; true if it was a member.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let was = self.contains(node);
        self.0[node.index() / 64] &= !(1 << (node.index() % 64));
        was
    }

    /// True if the node is a member.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.0[node.index() / 64] >> (node.index() % 64) & 1 == 1
    }

    /// True if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True if no member is other than `node`.
    #[must_use]
    pub fn is_subset_of(&self, node: NodeId) -> bool {
        let mut rest = *self;
        rest.remove(node);
        rest.is_empty()
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + use<> {
        let words = self.0;
        (0..WORDS).flat_map(move |index| {
            let mut word = words[index];
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros() as usize;
                    word &= word - 1;
                    NodeId((index * 64 + bit) as u16)
                })
            })
        })
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::EMPTY;
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_in_order() {
        let nodes = [NodeId(3), NodeId(64), NodeId(255)];
        let mut set: NodeSet = nodes.iter().rev().copied().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), nodes);
        assert_eq!(set.len(), 3);
        assert!(set.remove(NodeId(64)) && !set.remove(NodeId(64)));
        assert!(!set.insert(NodeId(3)));
        assert!(!set.is_subset_of(NodeId(3)));
        set.remove(NodeId(255));
        assert!(set.is_subset_of(NodeId(3)));
        assert!(NodeSet::EMPTY.is_subset_of(NodeId(0)));
    }
}
