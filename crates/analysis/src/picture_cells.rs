//! The picture: how much happened where.

use crate::Cell;
use crate::areas::reads_and_writes;
use crate::row_sums::{Amount, RowKey};
use gondwana_monitor::Kind;

/// The most cells.
const CELLS: usize = 200_000;
/// The largest unit that cells are made coarser to, as a power of two.
const COARSEST: u8 = 40;

/// The cells of rows; the area of each row is at the same index of `areas`. If there are too many, adjacent ones are
/// merged, and finally those with the lowest counts are left out.
pub(crate) fn picture_cells(rows: &[(RowKey, Amount)], areas: &[u32]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![];
    for ((like, amount), &area) in rows.iter().zip(areas) {
        let (reads, writes) = reads_and_writes(like.kind, amount.count);
        let moves =
            reads + writes > 0 || matches!(like.kind, Kind::Prefetched | Kind::Diff) && amount.bytes > 0;
        if moves {
            let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            cells.push(Cell {
                address: like.address,
                unit: like.unit,
                area,
                node: like.node,
                thread: like.thread,
                reads: small(reads),
                writes: small(writes),
                bytes: amount.bytes,
            });
        }
    }
    let mut unit = cells.iter().map(|cell| cell.unit).min().unwrap_or(COARSEST);
    cells = together(cells);
    while cells.len() > CELLS && unit < COARSEST {
        unit += 1;
        for cell in &mut cells {
            cell.unit = cell.unit.max(unit);
            cell.address = cell.address >> cell.unit << cell.unit;
        }
        cells = together(cells);
    }
    if cells.len() > CELLS {
        cells.sort_by_key(|cell| {
            std::cmp::Reverse((u64::from(cell.reads) + u64::from(cell.writes), cell.bytes))
        });
        cells.truncate(CELLS);
        cells.sort_unstable_by_key(key);
    }
    cells
}

fn key(cell: &Cell) -> (u64, u8, u32, u16, u32) {
    (cell.address, cell.unit, cell.area, cell.node, cell.thread)
}

/// Adds up cells with equal keys.
fn together(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.sort_unstable_by_key(key);
    cells.dedup_by(|next, cell| {
        let same = key(next) == key(cell);
        if same {
            cell.reads = cell.reads.saturating_add(next.reads);
            cell.writes = cell.writes.saturating_add(next.writes);
            cell.bytes = cell.bytes.saturating_add(next.bytes);
        }
        same
    });
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cells_become_coarser_and_nothing_is_lost() {
        let like = |index: u64, kind| RowKey {
            address: index * 32,
            unit: 5,
            node: 0,
            kind,
            peer: 1,
            thread: 1,
            code: 0,
        };
        let amount = Amount { count: 1, bytes: 2 };
        let rows: Vec<_> = (0..3 * CELLS as u64).map(|index| (like(index, Kind::Read), amount)).collect();
        let found = picture_cells(&rows, &vec![0; rows.len()]);
        assert_eq!((found.len(), found[0].unit), (rows.len() / 4, 7));
        assert_eq!(found.iter().map(|cell| u64::from(cell.reads)).sum::<u64>(), rows.len() as u64);
        assert!(found.is_sorted_by_key(|cell| cell.address));
        // Notices move nothing.
        assert_eq!(picture_cells(&[(like(0, Kind::Notice), amount)], &[0]), []);
    }
}
