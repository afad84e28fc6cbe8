use crate::sync::Object;
use crate::sync::object_map::ObjectMap;
use gondwana_topology::NodeId;
#[cfg(test)]
use std::collections::BTreeMap;

/// At the manager: the nodes in line for each token, in the order in which it reaches them.
///
/// The manager does not hear when a token moves on, but a node that asks again must have had it and passed it on:
/// that node's earlier place and all before it are history. So a line never has more places than there are nodes.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    manager: NodeId,
    lines: ObjectMap<Vec<NodeId>>,
}

impl Lines {
    /// Every token starts at its manager.
    pub(super) fn new(manager: NodeId) -> Self {
        Self { manager, lines: ObjectMap::default() }
    }

    /// A node takes the last place; returns whose turn is before, or `None` if the node has the last place
    /// already.
    pub(super) fn join(&mut self, object: Object, node: NodeId) -> Option<NodeId> {
        let line = self.lines.entry(object).or_insert_with(|| vec![self.manager]);
        let last = line.last().copied().filter(|last| *last != node)?;
        if let Some(place) = line.iter().position(|other| *other == node) {
            line.drain(..=place);
        }
        line.push(node);
        Some(last)
    }

    /// Whose turn is just before that of `node`. `None` if the token has passed that one, and if the turn of
    /// `until` comes before that of `node`.
    pub(super) fn before(&self, object: Object, node: NodeId, until: NodeId) -> Option<NodeId> {
        let line = self.lines.get(&object)?;
        let place_of = |node| line.iter().position(|other| *other == node);
        let place = place_of(node).filter(|place| Some(*place) <= place_of(until))?;
        line.get(place.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
impl Lines {
    /// All lines, in the order of the objects.
    pub(super) fn contents(&self) -> BTreeMap<Object, &[NodeId]> {
        self.lines.iter().map(|(object, line)| (*object, line.as_slice())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_forgets_what_is_over() {
        let [manager, a, b, c] = [0, 1, 2, 3].map(NodeId);
        let object = Object(0x40);
        let mut lines = Lines::new(manager);
        assert_eq!(lines.before(object, a, a), None);
        assert_eq!(lines.join(object, a), Some(manager));
        assert_eq!(lines.join(object, a), None);
        assert_eq!(lines.join(object, b), Some(a));
        assert_eq!(lines.join(object, c), Some(b));
        assert_eq!(lines.before(object, c, c), Some(b));
        assert_eq!(lines.before(object, a, c), Some(manager));
        assert_eq!(lines.before(object, manager, c), None);
        // The token has left a, and so it has left the manager.
        assert_eq!(lines.join(object, a), Some(c));
        assert_eq!(lines.before(object, c, a), Some(b));
        assert_eq!(lines.before(object, b, a), None);
        assert_eq!(lines.before(object, a, b), None, "a's new turn is after b's");
        assert_eq!(lines.before(object, manager, a), None);
    }
}
