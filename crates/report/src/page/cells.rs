//! The cells of the picture, not more than a page can hold.

use gondwana_analysis::Cell;
use std::collections::BTreeMap;

/// A page has no more cells than this.
pub(super) const LIMIT: usize = 200_000;
/// Units are not made longer than this to get below the limit, as a power of two: addresses have 47 bits.
const LONGEST: u8 = 47;

/// The cells in ascending order of addresses. If there are more than the limit, adjacent cells are merged into longer
/// and longer units; the second value is log2 of the unit, 0 if no cells were merged.
pub(super) fn bounded(cells: &[Cell], limit: usize) -> (Vec<Cell>, u8) {
    let mut kept: Vec<Cell> = cells.to_vec();
    for cell in &mut kept {
        cell.unit = cell.unit.min(LONGEST);
    }
    kept.sort_by_key(|cell| cell.address);
    let mut unit = 0;
    while kept.len() > limit && unit < LONGEST {
        unit = if unit == 0 { finest(&kept) + 1 } else { unit + 1 };
        kept = coarser(&kept, unit);
    }
    // Only a hostile recording has so many nodes and threads that one unit for everything is not enough.
    kept.truncate(limit);
    (kept, unit)
}

fn finest(cells: &[Cell]) -> u8 {
    cells.iter().map(|cell| cell.unit).min().unwrap_or(0).min(LONGEST - 1)
}

/// Merges cells of shorter units that have the same unit, area, node and thread.
fn coarser(cells: &[Cell], unit: u8) -> Vec<Cell> {
    let mut together: BTreeMap<(u64, u8, u32, u16, u32), Cell> = BTreeMap::new();
    for cell in cells {
        let unit = unit.max(cell.unit);
        let address = cell.address >> unit << unit;
        let key = (address, unit, cell.area, cell.node, cell.thread);
        let sum =
            together.entry(key).or_insert(Cell { address, unit, reads: 0, writes: 0, bytes: 0, ..*cell });
        sum.reads = sum.reads.saturating_add(cell.reads);
        sum.writes = sum.writes.saturating_add(cell.writes);
        sum.bytes = sum.bytes.saturating_add(cell.bytes);
    }
    together.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell() -> impl Strategy<Value = Cell> {
        let whose = (0..3u32, 0..4u16, 0..5u32);
        (0..1u64 << 20, 0..=64u8, whose, 0..100u32, 0..100u32, 0..10_000u64).prop_map(
            |(address, unit, (area, node, thread), reads, writes, bytes)| Cell {
                address,
                unit,
                area,
                node,
                thread,
                reads,
                writes,
                bytes,
            },
        )
    }

    /// The sums of all cells of each thread of each node.
    fn sums(cells: &[Cell]) -> BTreeMap<(u32, u16, u32), (u64, u64, u64)> {
        let mut sums = BTreeMap::new();
        for cell in cells {
            let sum: &mut (u64, u64, u64) = sums.entry((cell.area, cell.node, cell.thread)).or_default();
            sum.0 += u64::from(cell.reads);
            sum.1 += u64::from(cell.writes);
            sum.2 += cell.bytes;
        }
        sums
    }

    proptest! {
        #[test]
        fn few_enough_and_nothing_is_lost(cells in prop::collection::vec(cell(), 0..200), limit in 60..200usize) {
            let (kept, _) = bounded(&cells, limit);
            prop_assert!(kept.len() <= limit);
            prop_assert!(kept.is_sorted_by_key(|cell| cell.address));
            prop_assert_eq!(sums(&kept), sums(&cells));
        }
    }

    #[test]
    fn cells_that_fit_stay_as_they_are() {
        let cells = [Cell { address: 64, unit: 5, reads: 1, ..Cell::default() }];
        assert_eq!(bounded(&cells, 1), (cells.to_vec(), 0));
    }

    #[test]
    fn neighbours_are_taken_together() {
        let cell = |address, reads| Cell { address, unit: 5, reads, ..Cell::default() };
        let (kept, unit) = bounded(&[cell(0, 1), cell(32, 2), cell(64, 4)], 2);
        assert_eq!(unit, 6);
        assert_eq!(kept, [Cell { unit: 6, ..cell(0, 3) }, Cell { unit: 6, ..cell(64, 4) }]);
    }

    #[test]
    fn more_threads_than_cells_are_cut_off() {
        let cells: Vec<Cell> = (0..10).map(|thread| Cell { thread, unit: 255, ..Cell::default() }).collect();
        assert_eq!(bounded(&cells, 4).0.len(), 4);
    }
}
