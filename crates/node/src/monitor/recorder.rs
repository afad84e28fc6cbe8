//! The recorder: makes records of what the monitor has aggregated, and sends them to the launcher.

use super::attribution::{Emitted, Written};
use crate::Node;
use crate::numbers::nanoseconds;
use gondwana_control::MAX_CHUNKS;
use gondwana_memory::PAGE_SIZE;
use gondwana_monitor::{
    AggregationTable, BankConfiguration, Filter, FilterRefinement, RetiredFilter, UnitRefinement,
};
use gondwana_recording::{
    BankRecord, Counted, End, FilterCounts, ImageRecord, Interval, RetiredFilterRecord, SegmentKind,
    SegmentRecord, Started, Stretch, Stretches, TotalsRecord, TransactionRow,
};
use std::sync::Arc;
use std::time::Instant;

/// The most rows in one chunk. A row takes at most 47 bytes: variable-length numbers of 64, 64, 64, 32 and 32 bits
/// (10, 10, 10, 5 and 5 bytes), one of 16 bits (3), and three bytes; a stretch takes one more. Half a datagram, so
/// that growing the buffer never makes the C library map memory: the addresses of mappings belong to the program.
const ROWS: usize = (MAX_CHUNKS / 2 - 64) / 47;

/// The most counters in one chunk; a counter takes at most 15 bytes.
const COUNTERS: usize = (MAX_CHUNKS / 2 - 64) / 15;

/// The most units of a range in one filter of a recording, whether or not they have counters.
const SECTION: u64 = gondwana_monitor::COUNTERS as u64;

/// The state of a node's recording.
pub(super) struct Recorder {
    began: Instant,
    /// When the last interval ended.
    last: u64,
    /// The table that is being written, or was written last. It replaces the event sink's table in the next interval.
    spare: AggregationTable,
    /// Chooses the units of the aggregation table, under `--monitor=auto`.
    unit_refinement: Option<UnitRefinement>,
    /// Moves filters of the counter bank to hot memory, under `--monitor=auto`.
    filter_refinement: Option<FilterRefinement>,
    /// Memory for the rows of one chunk.
    interval: Interval,
    stretches: Stretches,
    lost: u64,
    /// The number of names of data that have been written.
    named: usize,
    /// Messages and bytes that the node had sent when the recording began.
    before: (u64, u64),
    /// Faults that the node had taken when the recording began.
    faults_before: u64,
    /// What has been emitted about the program's data.
    emitted: Emitted,
    ended: bool,
}

impl Recorder {
    /// An empty recording. The event sink collects the bytes that this node writes in `written`. With
    /// `filter_refinement`, units are refined, too.
    pub(super) fn new(filter_refinement: Option<FilterRefinement>, written: Arc<Written>) -> Self {
        let began = Instant::now();
        Self {
            began,
            last: 0,
            spare: AggregationTable::default(),
            unit_refinement: filter_refinement.is_some().then(UnitRefinement::default),
            filter_refinement,
            interval: Interval { rows: Vec::with_capacity(ROWS), ..Interval::default() },
            stretches: Stretches { stretches: Vec::with_capacity(ROWS), ..Stretches::default() },
            lost: 0,
            named: 0,
            before: (0, 0),
            faults_before: 0,
            emitted: Emitted::new(began, written),
            ended: false,
        }
    }

    /// The time of a record: nanoseconds since the recording began.
    pub(super) fn now(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }

    /// Writes the first record, without which the node's other records cannot be read. It leaves at once, because the
    /// node may be killed.
    pub(super) fn begin(&mut self, node: &'static Node) {
        self.before = sent(node);
        self.faults_before = faults(node);
        node.put_record(&node.started(self.emitted.images()));
        self.look_closer(node);
        node.send_records();
    }

    /// Moves the refined filters, and the smaller units of the aggregation table, to the hottest memory.
    fn look_closer(&mut self, node: &'static Node) {
        let now = self.now();
        let happened = self.spare.rows();
        if let Some(filter_refinement) = &mut self.filter_refinement {
            send_retired(
                node,
                &node
                    .with_configuration(|configuration| filter_refinement.step(configuration, happened, now)),
            );
        }
        if let Some(unit_refinement) = &mut self.unit_refinement {
            let units = Some(unit_refinement.learn(happened));
            // The units before are dropped after the lock is released.
            let _before = node.core().env.sink.as_mut().map(|sink| std::mem::replace(&mut sink.units, units));
        }
    }

    /// Removes the filters of adaptive refinement.
    pub(super) fn remove_own_filters(&mut self, node: &'static Node) {
        if let Some(mut filter_refinement) = self.filter_refinement.take() {
            let now = self.now();
            send_retired(
                node,
                &node.with_configuration(|configuration| filter_refinement.end(configuration, now)),
            );
        }
    }

    /// Writes what has happened since the last call.
    pub(super) fn go_on(&mut self, node: &'static Node) {
        if !self.ended {
            self.take_table(node);
            self.look_closer(node);
            self.emitted.go_on(node);
            node.send_records();
        }
    }

    /// Writes what has happened since the last call, and everything that takes long: the end is near, and should be
    /// short.
    pub(super) fn prepare_end(&mut self, node: &'static Node) {
        if !self.ended {
            self.take_table(node);
            self.emitted.prepare_end(node);
            node.send_records();
        }
    }

    fn take_table(&mut self, node: &'static Node) {
        self.spare.clear();
        if let Some(table) = node.core().env.sink.as_mut().and_then(|sink| sink.table.as_mut()) {
            std::mem::swap(table, &mut self.spare);
        }
        let (begin, end) = (self.last, self.now());
        self.last = end;
        self.lost += self.spare.lost();
        (self.interval.begin, self.interval.end) = (begin, end);
        (self.stretches.begin, self.stretches.end) = (begin, end);
        for aggregates in self.spare.rows().chunks(ROWS) {
            for aggregate in aggregates {
                let (row, parts) = (TransactionRow::from(aggregate), aggregate.key.parts);
                if parts == 0 {
                    self.interval.rows.push(row);
                } else {
                    self.stretches.stretches.push(Stretch { row, parts });
                }
            }
            if !self.interval.rows.is_empty() {
                node.put_record(&self.interval);
                self.interval.rows.clear();
            }
            if !self.stretches.stretches.is_empty() {
                node.put_record(&self.stretches);
                self.stretches.stretches.clear();
            }
        }
        self.named = node.monitor.names.write(node, self.named);
        node.monitor.constructs.write(node);
        let (messages, bytes) = sent(node);
        let totals = TotalsRecord {
            time: end,
            faults: faults(node) - self.faults_before,
            messages: messages - self.before.0,
            bytes: bytes - self.before.1,
        };
        node.put_record(&totals);
    }

    /// Writes the last records.
    pub(super) fn end(&mut self, node: &'static Node) {
        if self.ended {
            return;
        }
        self.take_table(node);
        self.emitted.end(node);
        self.remove_own_filters(node);
        if let Some(configuration) = node.monitor.configuration().as_ref() {
            node.count_one_sided_reads(configuration, |_| true);
            write_counters(node, configuration, self.last);
        }
        self.ended = true;
        let (messages, bytes) = sent(node);
        let end = End {
            time: self.last,
            messages: messages - self.before.0,
            bytes: bytes - self.before.1,
            lost: self.lost,
        };
        node.put_record(&end);
        node.send_records();
    }
}

/// Writes the counters of all filters, as of `time`.
pub(super) fn write_counters(node: &Node, configuration: &BankConfiguration, time: u64) {
    for (id, filter) in configuration.filters() {
        for counts in parts(filter, configuration.counters(id).into_iter().flatten()) {
            node.put_record(&BankRecord { time, filters: vec![counts] });
        }
    }
}

/// Writes the counters of filters that adaptive refinement has removed.
fn send_retired(node: &Node, retired: &[RetiredFilter]) {
    for watch in retired {
        for filter in parts(&watch.filter, watch.counters.iter().copied()) {
            node.put_record(&RetiredFilterRecord { begin: watch.begin, end: watch.end, filter });
        }
    }
}

/// A filter with its counters, in as many parts as chunks and the format need; at least one.
fn parts(filter: &Filter, counters: impl Iterator<Item = u64>) -> Vec<FilterCounts> {
    let counted = (0..).zip(counters).filter(|&(_, count)| count > 0);
    // The format has counters by the index of their unit in the range.
    let units: Vec<(u64, u64)> = counted
        .map(|(counter, count)| ((filter.address(counter) - filter.start) >> filter.unit, count))
        .collect();
    let part = |section: u64, counters: &[(u64, u64)]| {
        let start = filter.start + ((section * SECTION) << filter.unit);
        FilterCounts {
            start,
            end: filter.end.min(start.saturating_add(SECTION << filter.unit)),
            unit: filter.unit,
            kinds: filter.kinds.bits(),
            counters: counters
                .iter()
                .map(|&(unit, count)| Counted { unit: (unit % SECTION) as u32, count })
                .collect(),
        }
    };
    if units.is_empty() {
        return vec![part(0, &[])];
    }
    let sections = units.chunk_by(|one, next| one.0 / SECTION == next.0 / SECTION);
    sections
        .flat_map(|section| section.chunks(COUNTERS))
        .map(|units| part(units[0].0 / SECTION, units))
        .collect()
}

/// Messages and bytes that a node has sent.
fn sent(node: &Node) -> (u64, u64) {
    let core = node.core();
    (core.env.messages.messages(), core.env.messages.bytes())
}

/// Faults that threads of a node have taken.
fn faults(node: &Node) -> u64 {
    let core = node.core();
    let counters = core.counters();
    counters.read_faults + counters.write_faults
}

impl Node {
    fn started(&self, images: &[ImageRecord]) -> Started {
        let part = crate::start::part(&self.boot);
        let pages = |segment: &gondwana_memory::Segment, kind| {
            let start = segment.base as u64;
            SegmentRecord { start, end: start + u64::from(segment.pages) * PAGE_SIZE as u64, kind }
        };
        let start = self.geometry.span().base as u64 + u64::from(self.me.0) * part;
        let mut segments = vec![SegmentRecord { start, end: start + part, kind: SegmentKind::Heap }];
        segments.extend(self.geometry.overlays().iter().map(|data| pages(data, SegmentKind::Data)));
        Started {
            host: host_name(),
            process: gondwana_sys::process().cast_unsigned(),
            segments,
            images: images.to_vec(),
        }
    }
}

/// The name of this computer; empty if it has none.
fn host_name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the kernel writes at most as many bytes as are given.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0 {
        return String::new();
    }
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_monitor::{FilterText, Partition};

    fn filter(text: &str) -> Filter {
        text.parse::<FilterText>().unwrap().filter
    }

    /// The range of a part, and the units in it that have counted.
    type Part = (u64, u64, Vec<(u32, u64)>);

    fn counts_of(filter: &Filter, counters: &[u64]) -> Vec<Part> {
        let parts = parts(filter, counters.iter().copied()).into_iter();
        let counters = |part: &FilterCounts| part.counters.iter().map(|it| (it.unit, it.count)).collect();
        parts.map(|part| (part.start, part.end, counters(&part))).collect()
    }

    #[test]
    fn counters_are_written_by_where_their_units_are() {
        let plain = filter("range=0x10000-0x14000");
        assert_eq!(counts_of(&plain, &[0, 5, 0, 7]), [(0x1_0000, 0x1_4000, vec![(1, 5), (3, 7)])]);
        assert_eq!(counts_of(&plain, &[0; 4]), [(0x1_0000, 0x1_4000, vec![])]);
        let beginnings = Filter { partition: Some(Partition { part: 13, units: 1 }), ..plain };
        assert_eq!(counts_of(&beginnings, &[6, 8]), [(0x1_0000, 0x1_4000, vec![(0, 6), (2, 8)])]);
    }

    #[test]
    fn a_range_of_more_units_than_a_filter_can_have_is_written_in_sections() {
        // Parts of 64 MiB and sections of 16 MiB.
        let base = 0x1000_0000_0000;
        let long = filter("range=0x100000000000-0x100010000000,unit=32");
        let beginnings = Filter { partition: Some(Partition { part: 26, units: 1 << 19 }), ..long };
        let section = |start: u64, counters: &[(u32, u64)]| (start, start + (16 << 20), counters.to_vec());
        let mut counters = vec![0; 4 << 19];
        assert_eq!(counts_of(&beginnings, &counters), [section(base, &[])]);
        counters[(1 << 19) - 1] = 4;
        counters[(3 << 19) + 1] = 7;
        let expected = [section(base, &[((1 << 19) - 1, 4)]), section(base + (192 << 20), &[(1, 7)])];
        assert_eq!(counts_of(&beginnings, &counters), expected);
    }
}
