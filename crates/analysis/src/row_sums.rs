//! The rows of all intervals, with like rows added up.

use crate::Totals;
use gondwana_monitor::Kind;
use gondwana_page::PAGE_SIZE;
use gondwana_recording::{Recording, TransactionRow};
use std::collections::HashMap;
use std::ops::Range;

/// log2 of the bytes of the longest unit; longer units in a recording count as this.
const LONGEST_UNIT: u8 = 40;

/// The dimensions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The number of nodes.
    pub(crate) nodes: usize,
    /// Bytes of a page, a power of two.
    pub(crate) page_bytes: u64,
}

impl Shape {
    /// The dimensions of a recording, with the usual page size if its own makes no sense.
    pub(crate) fn of(recording: &Recording) -> Self {
        let bytes = u64::from(recording.run.page_bytes);
        let sensible = bytes.is_power_of_two() && (1 << 9..=1 << 30).contains(&bytes);
        Self {
            nodes: usize::from(recording.run.nodes).min(gondwana_topology::MAX_NODES),
            page_bytes: if sensible { bytes } else { PAGE_SIZE as u64 },
        }
    }
}

/// The most different rows for which stretches are expanded into rows of their parts; beyond them a stretch stays one
/// row. Only a hostile recording has so many, each of which may take a few bytes in the file.
const MOST_ROWS: usize = 1 << 24;

/// The key of rows that are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowKey {
    /// First address of the unit.
    pub(crate) address: u64,
    /// log2 of the bytes of the unit.
    pub(crate) unit: u8,
    /// The node that recorded the row.
    pub(crate) node: u16,
    /// The kind of the transactions.
    pub(crate) kind: Kind,
    /// The other node.
    pub(crate) peer: u16,
    /// The thread, plus 1; 0 if none.
    pub(crate) thread: u32,
    /// The address of the instruction; 0 if unknown.
    pub(crate) code: u64,
}

impl RowKey {
    fn of(node: u16, row: &TransactionRow) -> Self {
        let unit = row.unit.min(LONGEST_UNIT);
        let address = row.address & !((1 << unit) - 1);
        Self { address, unit, node, kind: row.kind, peer: row.peer, thread: row.thread, code: row.code }
    }

    /// The addresses of the unit.
    pub(crate) fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(1 << self.unit)
    }
}

/// The sum of like rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Transactions.
    pub(crate) count: u64,
    /// Bytes that moved.
    pub(crate) bytes: u64,
}

impl Amount {
    fn add(&mut self, count: u64, bytes: u64) {
        self.count = self.count.saturating_add(count);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// All rows about data, in ascending order of addresses. Rows about locks are in `locks`.
pub(crate) fn of_data(recording: &Recording, nodes: usize) -> Vec<(RowKey, Amount)> {
    sums(recording, nodes, MOST_ROWS)
}

fn sums(recording: &Recording, nodes: usize, most: usize) -> Vec<(RowKey, Amount)> {
    let mut sums: HashMap<RowKey, Amount> = HashMap::new();
    let add = |sums: &mut HashMap<RowKey, Amount>, node: u16, row: &TransactionRow| {
        if row.kind != Kind::LockHandOff && usize::from(node) < nodes {
            sums.entry(RowKey::of(node, row)).or_default().add(u64::from(row.count), row.bytes);
        }
    };
    for (node, interval) in &recording.intervals {
        interval.rows.iter().for_each(|row| add(&mut sums, *node, row));
    }
    for (node, stretches) in &recording.stretches {
        for stretch in &stretches.stretches {
            if sums.len() < most {
                stretch.rows().for_each(|row| add(&mut sums, *node, &row));
            } else {
                add(&mut sums, *node, &stretch.row);
            }
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_unstable_by_key(|(like, _)| *like);
    rows
}

impl Totals {
    /// Adds transactions of a kind.
    pub(crate) fn count(&mut self, kind: Kind, amount: Amount) {
        let Amount { count, bytes } = amount;
        let add = |to: &mut u64| *to = to.saturating_add(count);
        match kind {
            Kind::Read | Kind::ColdRead | Kind::ExcessRead => add(&mut self.reads),
            Kind::Write | Kind::ColdWrite | Kind::ExcessWrite => add(&mut self.writes),
            Kind::Prefetched => add(&mut self.ahead),
            Kind::Upgrade => add(&mut self.upgrades),
            Kind::Diff => add(&mut self.diffs),
            Kind::Notice => add(&mut self.notices),
            Kind::Invalidation => add(&mut self.invalidations),
            Kind::Recall => add(&mut self.recalls),
            Kind::LockHandOff => return,
        }
        match kind {
            Kind::ColdRead | Kind::ColdWrite => add(&mut self.cold),
            Kind::ExcessRead | Kind::ExcessWrite => add(&mut self.excess),
            _ => {}
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds other totals.
    pub(crate) fn add(&mut self, other: &Self) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.reads, other.reads);
        add(&mut self.writes, other.writes);
        add(&mut self.cold, other.cold);
        add(&mut self.excess, other.excess);
        add(&mut self.ahead, other.ahead);
        add(&mut self.upgrades, other.upgrades);
        add(&mut self.diffs, other.diffs);
        add(&mut self.notices, other.notices);
        add(&mut self.invalidations, other.invalidations);
        add(&mut self.recalls, other.recalls);
        add(&mut self.bytes, other.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_monitor::Direction;
    use gondwana_recording::{Stretch, Stretches};

    #[test]
    fn of_too_many_rows_stretches_are_taken_as_a_whole() {
        let row = |address, unit, count| TransactionRow {
            address,
            unit,
            kind: Kind::Prefetched,
            direction: Direction::Out,
            peer: 1,
            thread: 1,
            code: 0,
            count,
            bytes: u64::from(count) * 4096,
        };
        let stretches = vec![
            Stretch { row: row(0x8000, 14, 8), parts: 2 },
            Stretch { row: row(0x8000, 13, 2), parts: 1 },
            Stretch { row: row(0x1_0000, 15, 8), parts: 3 },
        ];
        let stretches = vec![(0, Stretches { begin: 0, end: 1, stretches })];
        let recording = Recording { stretches, ..Recording::default() };
        let found = |most| -> Vec<(u64, u8, u64)> {
            let rows = sums(&recording, 2, most).into_iter();
            rows.map(|(like, amount)| (like.address, like.unit, amount.count)).collect()
        };
        let pages =
            |first, rest| [(0x8000, 12, first), (0x9000, 12, first), (0xa000, 12, rest), (0xb000, 12, rest)];
        let whole = [(0x8000, 13, 2), (0x1_0000, 15, 8)];
        let mut expected = [&pages(2, 2)[..], &whole].concat();
        expected.sort_unstable();
        assert_eq!(found(4), expected);
        let others = (0..8).map(|page| (0x1_0000 + page * 0x1000, 12, 1));
        assert_eq!(found(5), pages(3, 2).into_iter().chain(others).collect::<Vec<_>>());
    }
}
