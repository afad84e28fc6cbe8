//! What must hold of records besides that they can be decoded: whoever analyses a recording need not check it again.

use crate::{
    Alike, BankRecord, End, FilterCounts, Image, Interval, Name, Object, Omitted, Reference, Row, Run,
    Segment, Site, Started, Stretch, Stretches, Thread, Totals, Watched, Written,
};
use gondwana_monitor::{COUNTERS, Kind, LARGEST_UNIT, SMALLEST_UNIT};

/// Most nodes of a run.
const MOST_NODES: u16 = 4096;

/// Blocks of 64 bytes that a page has, at most: [`Written::blocks`] has a bit for each.
const BLOCK: u64 = 64;

/// A record that may make no sense.
pub(crate) trait Checked {
    /// True if a run of so many nodes could have recorded it.
    fn is_sound(&self, run: &Run) -> bool;
}

/// True if there are `bytes` addresses from `start` on.
fn fits(start: u64, bytes: u64) -> bool {
    start.checked_add(bytes).is_some()
}

fn all<R: Checked>(records: &[R], run: &Run) -> bool {
    records.iter().all(|record| record.is_sound(run))
}

impl Checked for Run {
    fn is_sound(&self, _run: &Run) -> bool {
        (1..=MOST_NODES).contains(&self.nodes)
            && self.page_bytes.is_power_of_two()
            && u64::from(self.page_bytes) <= BLOCK * u64::from(u64::BITS)
            && u64::from(self.page_bytes) >= BLOCK
    }
}

impl Checked for Started {
    fn is_sound(&self, run: &Run) -> bool {
        all(&self.segments, run) && all(&self.images, run)
    }
}

impl Checked for Segment {
    fn is_sound(&self, _run: &Run) -> bool {
        self.start <= self.end
    }
}

impl Checked for Image {
    fn is_sound(&self, _run: &Run) -> bool {
        self.start <= self.end
    }
}

impl Checked for Thread {
    fn is_sound(&self, _run: &Run) -> bool {
        self.stack_start <= self.stack_end
    }
}

impl Checked for Site {
    fn is_sound(&self, _run: &Run) -> bool {
        self.number > 0
    }
}

impl Checked for Object {
    fn is_sound(&self, _run: &Run) -> bool {
        fits(self.address, self.bytes)
    }
}

impl Checked for Alike {
    fn is_sound(&self, run: &Run) -> bool {
        let distances: u64 = self.distances.iter().map(|&distance| u64::from(distance)).sum();
        let bytes = distances.checked_mul(Self::UNIT).and_then(|bytes| bytes.checked_add(self.first.bytes));
        self.first.is_sound(run)
            && !self.distances.contains(&0)
            && bytes.is_some_and(|bytes| fits(self.first.address, bytes))
    }
}

impl Checked for Interval {
    fn is_sound(&self, run: &Run) -> bool {
        self.begin <= self.end && all(&self.rows, run)
    }
}

impl Checked for Row {
    fn is_sound(&self, run: &Run) -> bool {
        self.unit <= LARGEST_UNIT
            && self.address.is_multiple_of(1 << self.unit)
            && fits(self.address, 1 << self.unit)
            && self.peer < run.nodes
            && self.count > 0
    }
}

impl Checked for Stretches {
    fn is_sound(&self, run: &Run) -> bool {
        self.begin <= self.end && all(&self.stretches, run)
    }
}

impl Checked for Stretch {
    fn is_sound(&self, run: &Run) -> bool {
        // A lock has no parts.
        self.row.is_sound(run)
            && self.row.kind != Kind::LockHandOff
            && (1..=self.row.unit.min(Self::MOST_PARTS)).contains(&self.parts)
            && self.row.count >> self.parts > 0
    }
}

impl Checked for Written {
    fn is_sound(&self, run: &Run) -> bool {
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
    fn is_sound(&self, _run: &Run) -> bool {
        fits(self.address, 8)
    }
}

impl Checked for BankRecord {
    fn is_sound(&self, run: &Run) -> bool {
        all(&self.filters, run)
    }
}

impl Checked for FilterCounts {
    fn is_sound(&self, _run: &Run) -> bool {
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

impl Checked for Watched {
    fn is_sound(&self, run: &Run) -> bool {
        self.begin <= self.end && self.filter.is_sound(run)
    }
}

impl Checked for Name {
    fn is_sound(&self, _run: &Run) -> bool {
        self.start < self.end && !self.name.is_empty()
    }
}

impl Checked for Omitted {
    fn is_sound(&self, _run: &Run) -> bool {
        true
    }
}

impl Checked for Totals {
    fn is_sound(&self, _run: &Run) -> bool {
        true
    }
}

impl Checked for End {
    fn is_sound(&self, _run: &Run) -> bool {
        true
    }
}
