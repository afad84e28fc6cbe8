//! Which node a descriptor's number belongs to.

use std::ops::Range;

/// `select` supports numbers below this.
const SELECTABLE: i32 = 1024;
const _: () = assert!(SELECTABLE as usize == libc::FD_SETSIZE);

/// How many numbers a run of few nodes divides.
const WANTED: i32 = 2048;

/// The least count of numbers of a node above [`SELECTABLE`], unless there are many nodes.
const LEAST: i32 = 128;

/// The most numbers that any run divides. Each node has a placeholder at almost every one, which costs the kernel
/// time and memory, and also programs that list the open files of all processes: with [`LEAST`] for each of 256 nodes
/// there would be nine million.
pub(super) const MOST: i32 = 5 * SELECTABLE;

/// The numbers of one run, divided among its nodes. Every node has a part of the numbers that `select` knows, and
/// a part of the rest. Node 0 has the first numbers, as `main` expects, and half of the first part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    nodes: u16,
    room: i32,
}

impl Division {
    /// Divides numbers among nodes; none above `limit`. The nodes of a run agree as long as none has a limit below
    /// the wanted few thousand.
    pub(super) fn new(nodes: u16, limit: i32) -> Self {
        let wanted = WANTED.max(SELECTABLE + i32::from(nodes) * LEAST).min(MOST);
        Self { nodes, room: wanted.min(limit) }
    }

    /// The end of the divided numbers.
    pub(super) fn room(&self) -> i32 {
        self.room
    }

    /// The numbers of a node.
    pub(super) fn of(&self, node: u16) -> [Range<i32>; 2] {
        let (node, nodes) = (i32::from(node), i32::from(self.nodes));
        let selectable = self.room.min(SELECTABLE);
        let first = selectable / 2;
        let low = if node == 0 { 0..first } else { share(first..selectable, node - 1, nodes - 1) };
        [low, share(selectable..self.room, node, nodes)]
    }

    /// The node that a number belongs to.
    pub(super) fn owner(&self, number: i32) -> Option<usize> {
        let is_of = |&node: &u16| self.of(node).iter().any(|part| part.contains(&number));
        (0..self.nodes).find(is_of).map(usize::from)
    }
}

fn share(range: Range<i32>, index: i32, count: i32) -> Range<i32> {
    let length = range.end - range.start;
    range.start + length * index / count..range.start + length * (index + 1) / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_owner() {
        for (nodes, limit) in [(2, 1 << 20), (3, 1 << 20), (7, 4096), (256, 1 << 20), (5, 300)] {
            let division = Division::new(nodes, limit);
            assert!(division.room() <= limit.min(MOST));
            for number in 0..division.room() {
                let owners =
                    (0..nodes).filter(|&node| division.of(node).iter().any(|part| part.contains(&number)));
                assert_eq!(owners.count(), 1, "{number} of {nodes} nodes");
            }
            assert_eq!(division.owner(division.room()), None);
        }
    }

    #[test]
    fn main_has_the_first_numbers_and_everyone_some_for_select() {
        for nodes in [2, 4, 16, 64, 256] {
            let division = Division::new(nodes, 1 << 20);
            assert_eq!(division.owner(3), Some(0));
            for node in 0..nodes {
                let [low, high] = division.of(node);
                assert!(!low.is_empty() && low.end <= SELECTABLE, "{low:?}");
                let least = LEAST.min(4 * SELECTABLE / i32::from(nodes));
                assert!(high.end - high.start >= least - 1, "{high:?}");
            }
        }
    }
}
