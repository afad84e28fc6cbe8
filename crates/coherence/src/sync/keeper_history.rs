use gondwana_topology::NodeId;

/// A node that has had an object pays for its recall if it has used it so often meanwhile: a recall takes as many messages as
/// two uses at the manager, and the recaller waits for them.
const PAYS: u32 = 8;

/// So many uses at the manager are enough, however often objects were recalled for nothing.
const MOST: u32 = 1024;

/// How nodes have used an object at its manager, which decides who gets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct History {
    /// Who has changed the object last, and how often in turn.
    last: Option<NodeId>,
    run: u32,
    /// Uses since the last change that do not change the object for others.
    light: u32,
    /// So many in turn give the object to a node.
    needed_to_keep: u32,
    /// So many light uses give nodes the right to them.
    needed_to_share: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { last: None, run: 0, light: 0, needed_to_keep: 1, needed_to_share: 1 }
    }
}

impl History {
    /// A node has changed the object: true if it should keep it.
    pub(super) fn change(&mut self, node: NodeId) -> bool {
        self.light = 0;
        self.run = if self.last.replace(node) == Some(node) { self.run.saturating_add(1) } else { 1 };
        self.run >= self.needed_to_keep
    }

    /// A node has used the object and not changed it for others: true if it should share it.
    pub(super) fn look(&mut self) -> bool {
        self.light = self.light.saturating_add(1);
        self.light >= self.needed_to_share
    }

    /// A node has given back the object, or its share, after so many uses.
    pub(super) fn returned(&mut self, shared: bool, uses: u32) {
        let needed = if shared { &mut self.needed_to_share } else { &mut self.needed_to_keep };
        *needed = if uses >= PAYS { (*needed / 2).max(1) } else { (*needed * 2).min(MOST) };
        self.run = 0;
        self.light = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_what_it_uses_alone_and_less_readily_after_recalls_for_nothing() {
        let mut history = History::default();
        let (one, two) = (NodeId(1), NodeId(2));
        assert!(history.change(one));
        history.returned(false, 0);
        assert!(!history.change(two));
        assert!(!history.change(one), "not in turn");
        assert!(history.change(one));
        for _ in 0..20 {
            history.returned(false, PAYS - 1);
        }
        assert_eq!((0..).find(|_| history.change(two)), Some(MOST - 1));
        history.returned(false, PAYS);
        assert_eq!((0..).find(|_| history.change(two)), Some(MOST / 2 - 1));
    }

    #[test]
    fn changes_keep_nodes_from_sharing() {
        let mut history = History::default();
        assert!(history.look());
        history.returned(true, 0);
        assert!(!history.look());
        let _kept = history.change(NodeId(1));
        assert!(!history.look());
        assert!(history.look());
    }
}
