//! Which homes were asked for, page by page.

use gondwana_rset::Placement;
use gondwana_topology::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Consecutive pages of one region.
#[derive(Clone, Debug)]
struct Part {
    count: u32,
    /// The number of the first page within the region, and how many pages that has.
    offset: u64,
    of: u64,
    placement: Arc<Placement>,
}

/// The pages of this node's part of the span, or of the program's data, that have a policy. What was freed stays until
/// it is allocated anew, because its homes stay as well.
#[derive(Debug, Default)]
pub(super) struct Asked(BTreeMap<u32, Part>);

impl Asked {
    /// Notes that `count` pages from `first` are pages `offset` and so on of a region of `of` pages.
    pub(super) fn insert(&mut self, first: u32, count: u32, offset: u64, of: u64, placement: Arc<Placement>) {
        self.remove(first, count);
        self.0.insert(first, Part { count, offset, of, placement });
    }

    /// Forgets pages; true if there was something to forget.
    pub(super) fn remove(&mut self, first: u32, count: u32) -> bool {
        let end = first + count;
        let before = self.0.range(..first).next_back().filter(|(start, part)| *start + part.count > first);
        let touched: Vec<u32> = before
            .map(|(start, _)| *start)
            .into_iter()
            .chain(self.0.range(first..end).map(|(start, _)| *start))
            .collect();
        for start in &touched {
            let Some(part) = self.0.remove(start) else { continue };
            let part_end = start + part.count;
            if *start < first {
                self.0.insert(*start, Part { count: first - start, ..part.clone() });
            }
            if part_end > end {
                let offset = part.offset + u64::from(end - start);
                self.0.insert(end, Part { count: part_end - end, offset, ..part });
            }
        }
        !touched.is_empty()
    }

    /// How many pages were asked to be on each of `nodes` nodes, for regions that threads of `touching` allocated.
    pub(super) fn by_node(&self, nodes: u16, touching: NodeId) -> Vec<u64> {
        let mut sums = vec![0; usize::from(nodes)];
        for part in self.0.values() {
            for index in 0..u64::from(part.count) {
                if let Some(node) = part.placement.node_of(part.offset + index, part.of, touching) {
                    sums[node.index()] += 1;
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_rset::{MemoryPolicy, RSet};
    use gondwana_topology::{Bytes, Machine};

    fn placement(text: &str) -> Arc<Placement> {
        let machine = Machine::uniform(2, 1, Bytes(1 << 30));
        let policy = MemoryPolicy::parse(text, &machine, &gondwana_rset::Registry::default()).unwrap();
        Arc::new(Placement::new(policy, &RSet::global(&machine), &machine).unwrap())
    }

    #[test]
    fn pages_are_counted_where_they_were_last_asked_to_be() {
        let mut asked = Asked::default();
        asked.insert(100, 10, 0, 10, placement("striped:1"));
        assert_eq!(asked.by_node(2, NodeId(0)), [5, 5]);
        asked.insert(103, 2, 0, 2, placement("remote"));
        assert_eq!(asked.by_node(2, NodeId(0)), [4, 6]);
        assert!(asked.remove(102, 4));
        assert_eq!(asked.by_node(2, NodeId(0)), [3, 3]);
        assert!(!asked.remove(102, 4));
        assert!(asked.remove(0, 1000));
        assert_eq!(asked.by_node(2, NodeId(0)), [0, 0]);
    }

    #[test]
    fn what_is_left_of_a_region_keeps_its_place_in_it() {
        let mut asked = Asked::default();
        asked.insert(0, 8, 0, 8, placement("block"));
        asked.remove(0, 6);
        assert_eq!(asked.by_node(2, NodeId(0)), [0, 2]);
    }
}
