//! Addresses as a strip of characters: the node that has most of each part.

use gondwana_page::PAGE_SIZE;
use gondwana_topology::NodeId;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Parts that a strip has at most.
pub(super) const CELLS: usize = 32;

/// The strip: a character for each part.
#[derive(Debug)]
pub(super) struct Strip {
    addresses: Range<usize>,
    cells: Vec<BTreeMap<NodeId, usize>>,
}

impl Strip {
    /// An empty strip. Small ranges have a part for each page.
    pub(super) fn new(addresses: Range<usize>) -> Self {
        let cells = (addresses.len() / PAGE_SIZE).clamp(1, CELLS);
        Self { addresses, cells: vec![BTreeMap::new(); cells] }
    }

    /// Adds a page.
    pub(super) fn add(&mut self, address: usize, node: Option<NodeId>) {
        // Ranges may be so long that their products with the number of cells overflow.
        let offset = (address - self.addresses.start) as u128;
        let cell = (offset * self.cells.len() as u128 / self.addresses.len() as u128) as usize;
        if let Some(node) = node {
            *self.cells[cell].entry(node).or_default() += 1;
        }
    }
}

/// A digit or letter for the node with most pages of a part, a dot for a part that has none.
impl fmt::Display for Strip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.cells.iter().try_for_each(|cell| {
            // Of equal numbers, that of the lowest node counts.
            let most = cell.iter().rev().max_by_key(|(_, pages)| **pages);
            f.write_char(most.map_or('.', |(node, _)| symbol(*node)))
        })
    }
}

/// Nodes from 0 to 9, a to z; all others have one symbol.
fn symbol(node: NodeId) -> char {
    char::from_digit(u32::from(node.0), 36).unwrap_or('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ranges_have_a_character_for_each_page() {
        let mut strip = Strip::new(0x1000..0x5000);
        for (address, node) in [(0x1000, Some(0)), (0x2000, None), (0x3000, Some(11)), (0x4000, Some(200))] {
            strip.add(address, node.map(NodeId));
        }
        assert_eq!(strip.to_string(), "0.b#");
    }

    #[test]
    fn the_node_with_most_pages_of_a_part_is_shown() {
        let page = 0x1000;
        let mut strip = Strip::new(0..CELLS * 4 * page);
        for number in 0..CELLS * 4 {
            let node = if number % 4 == 0 { 0 } else { 1 + number / (CELLS * 2) };
            strip.add(number * page, Some(NodeId(u16::try_from(node).unwrap())));
        }
        assert_eq!(strip.to_string(), format!("{}{}", "1".repeat(CELLS / 2), "2".repeat(CELLS / 2)));
    }

    #[test]
    fn the_longest_range_there_can_be_is_a_strip() {
        let mut strip = Strip::new(0..1 << 56);
        strip.add((1 << 56) - 4096, Some(NodeId(3)));
        assert_eq!(strip.to_string(), format!("{}3", ".".repeat(CELLS - 1)));
    }
}
