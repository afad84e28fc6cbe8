//! Checks of decoded records: the analysis relies on them.

use crate::{
    BankRecord, BlockRecord, BlockSeries, ConstructRecord, End, FilterCounts, HomeRecord, ImageRecord,
    Interval, Name, Omitted, Reference, RetiredFilterRecord, RunRecord, SegmentRecord, SiteRecord, Started,
    Stretch, Stretches, ThreadRecord, TotalsRecord, TransactionRow, WrittenRecord,
};
use gondwana_monitor::{COUNTERS, Kind, LARGEST_UNIT, SMALLEST_UNIT};

/// The most nodes of a run.
const MOST_NODES: u16 = 4096;

/// Blocks of 64 bytes that a page has, at most: [`WrittenRecord::blocks`] has a bit for each.
const BLOCK: u64 = 64;

/// A record that can be decoded and still be invalid.
pub(crate) trait Checked {
    /// True if a node of this run could have recorded it.
    fn is_sound(&self, run: &RunRecord) -> bool;
}

/// True if there are `bytes` addresses from `start` on.
fn fits(start: u64, bytes: u64) -> bool {
    start.checked_add(bytes).is_some()
}

fn all<R: Checked>(records: &[R], run: &RunRecord) -> bool {
    records.iter().all(|record| record.is_sound(run))
}

impl Checked for RunRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        (1..=MOST_NODES).contains(&self.nodes)
            && self.page_bytes.is_power_of_two()
            && u64::from(self.page_bytes) <= BLOCK * u64::from(u64::BITS)
            && u64::from(self.page_bytes) >= BLOCK
    }
}

impl Checked for Started {
    fn is_sound(&self, run: &RunRecord) -> bool {
        all(&self.segments, run) && all(&self.images, run)
    }
}

impl Checked for SegmentRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        self.start <= self.end
    }
}

impl Checked for ImageRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        self.start <= self.end
    }
}

impl Checked for ThreadRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        self.stack_start <= self.stack_end
    }
}

impl Checked for SiteRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        self.number > 0
    }
}

impl Checked for BlockRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        fits(self.address, self.bytes)
    }
}

impl Checked for BlockSeries {
    fn is_sound(&self, run: &RunRecord) -> bool {
        let distances: u64 = self.distances.iter().map(|&distance| u64::from(distance)).sum();
        let bytes = distances.checked_mul(Self::UNIT).and_then(|bytes| bytes.checked_add(self.first.bytes));
        self.first.is_sound(run)
            && !self.distances.contains(&0)
            && bytes.is_some_and(|bytes| fits(self.first.address, bytes))
    }
}

impl Checked for Interval {
    fn is_sound(&self, run: &RunRecord) -> bool {
        self.begin <= self.end && all(&self.rows, run)
    }
}

impl Checked for TransactionRow {
    fn is_sound(&self, run: &RunRecord) -> bool {
        self.unit <= LARGEST_UNIT
            && self.address.is_multiple_of(1 << self.unit)
            && fits(self.address, 1 << self.unit)
            && self.peer < run.nodes
            && self.count > 0
    }
}

impl Checked for Stretches {
    fn is_sound(&self, run: &RunRecord) -> bool {
        self.begin <= self.end && all(&self.stretches, run)
    }
}

impl Checked for Stretch {
    fn is_sound(&self, run: &RunRecord) -> bool {
        // A lock has no parts.
        self.row.is_sound(run)
            && self.row.kind != Kind::LockHandOff
            && (1..=self.row.unit.min(Self::MOST_PARTS)).contains(&self.parts)
            && self.row.count >> self.parts > 0
    }
}

impl Checked for WrittenRecord {
    fn is_sound(&self, run: &RunRecord) -> bool {
        let page = u64::from(run.page_bytes);
        let blocks = page / BLOCK;
        self.address.is_multiple_of(page)
            && fits(self.address, page)
            && (blocks >= 64 || self.blocks >> blocks == 0)
            && self.bytes.len() == self.blocks.count_ones() as usize
            && self.bytes.iter().all(|&bytes| bytes != 0)
    }
}

impl Checked for Reference {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        fits(self.address, 8)
    }
}

impl Checked for BankRecord {
    fn is_sound(&self, run: &RunRecord) -> bool {
        all(&self.filters, run)
    }
}

impl Checked for FilterCounts {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        let length = self.end.checked_sub(self.start);
        (SMALLEST_UNIT..=LARGEST_UNIT).contains(&self.unit)
            && length.is_some_and(|length| {
                let units = length >> self.unit;
                length.is_multiple_of(1 << self.unit)
                    && units <= COUNTERS as u64
                    && self
                        .counters
                        .iter()
                        .all(|counted| u64::from(counted.unit) < units && counted.count > 0)
            })
            && self.counters.is_sorted_by(|a, b| a.unit < b.unit)
    }
}

impl Checked for ConstructRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        self.count > 0
    }
}

impl Checked for HomeRecord {
    fn is_sound(&self, run: &RunRecord) -> bool {
        let page = u64::from(run.page_bytes);
        self.address.is_multiple_of(page) && fits(self.address, page)
    }
}

impl Checked for RetiredFilterRecord {
    fn is_sound(&self, run: &RunRecord) -> bool {
        self.begin <= self.end && self.filter.is_sound(run)
    }
}

impl Checked for Name {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        self.start < self.end && !self.name.is_empty()
    }
}

impl Checked for Omitted {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        true
    }
}

impl Checked for TotalsRecord {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        true
    }
}

impl Checked for End {
    fn is_sound(&self, _run: &RunRecord) -> bool {
        true
    }
}
