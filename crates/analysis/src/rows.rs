//! The rows of all intervals, with those that are alike taken together.

use crate::Totals;
use gondwana_monitor::Kind;
use gondwana_recording::{Recording, Row};
use std::collections::HashMap;
use std::ops::Range;

/// Longest unit, as a power of two: a recording that says more is taken at this.
const LONGEST_UNIT: u8 = 40;

/// The dimensions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// How many nodes count.
    pub(crate) nodes: usize,
    /// Bytes in a page: a power of two.
    pub(crate) page_bytes: u64,
}

impl Shape {
    /// Those of a recording: what makes no sense is as it mostly is.
    pub(crate) fn of(recording: &Recording) -> Self {
        let bytes = u64::from(recording.run.page_bytes);
        let sensible = bytes.is_power_of_two() && (1 << 9..=1 << 30).contains(&bytes);
        Self {
            nodes: usize::from(recording.run.nodes).min(gondwana_topology::MAX_NODES),
            page_bytes: if sensible { bytes } else { 4096 },
        }
    }
}

/// What is the same in rows that are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Like {
    /// First address of the unit.
    pub(crate) address: u64,
    /// The length of the unit, as a power of two.
    pub(crate) unit: u8,
    /// The node that has recorded it.
    pub(crate) node: u16,
    /// What it was.
    pub(crate) kind: Kind,
    /// The other node.
    pub(crate) peer: u16,
    /// The thread, plus 1; 0 if none.
    pub(crate) thread: u32,
    /// The instruction.
    pub(crate) code: u64,
}

impl Like {
    fn of(node: u16, row: &Row) -> Self {
        let unit = row.unit.min(LONGEST_UNIT);
        let address = row.address & !((1 << unit) - 1);
        Self { address, unit, node, kind: row.kind, peer: row.peer, thread: row.thread, code: row.code }
    }

    /// The addresses of the unit.
    pub(crate) fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(1 << self.unit)
    }
}

/// How often, and how much.
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

/// All rows about data, in ascending order of their addresses: those about locks are elsewhere.
pub(crate) fn of_data(recording: &Recording, nodes: usize) -> Vec<(Like, Amount)> {
    let mut sums: HashMap<Like, Amount> = HashMap::new();
    for (node, interval) in &recording.intervals {
        let rows = interval.rows.iter().filter(|row| row.kind != Kind::LockHandOff);
        for row in rows.filter(|_| usize::from(*node) < nodes) {
            sums.entry(Like::of(*node, row)).or_default().add(u64::from(row.count), row.bytes);
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_unstable_by_key(|(like, _)| *like);
    rows
}

impl Totals {
    /// Counts transactions of a kind.
    pub(crate) fn count(&mut self, kind: Kind, amount: Amount) {
        let Amount { count, bytes } = amount;
        let add = |to: &mut u64| *to = to.saturating_add(count);
        match kind {
            Kind::Read | Kind::ColdRead | Kind::ExcessRead => add(&mut self.reads),
            Kind::Write | Kind::ColdWrite | Kind::ExcessWrite => add(&mut self.writes),
            Kind::Ahead => add(&mut self.ahead),
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

    /// Adds what others have counted.
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
