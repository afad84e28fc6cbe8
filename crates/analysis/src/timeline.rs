//! The time line: totals of each time slot.

use crate::row_sums::{Amount, Shape};
use crate::{TimelineSlot, Totals};
use gondwana_page::to_usize;
use gondwana_recording::Recording;
use std::collections::HashSet;
use std::ops::Range;

/// The most slots.
const SLOTS: u64 = 200;

/// The end of the recording, in nanoseconds since it began.
pub(crate) fn end(recording: &Recording) -> u64 {
    let ends = recording.ended.iter().map(|(_, end)| end.time);
    times(recording).map(|(_, time)| time.end.max(time.start)).chain(ends).max().unwrap_or(0)
}

/// The nodes and intervals of all rows.
fn times(recording: &Recording) -> impl Iterator<Item = (u16, Range<u64>)> {
    let of_intervals = recording.intervals.iter().map(|(node, it)| (*node, it.begin..it.end));
    let of_stretches = recording.stretches.iter().map(|(node, it)| (*node, it.begin..it.end));
    of_intervals.chain(of_stretches)
}

/// Slots of equal length, each with the intervals of all nodes whose middle is in it. A slot is at least as long as
/// most intervals.
pub(crate) fn timeline(recording: &Recording, shape: &Shape) -> Vec<TimelineSlot> {
    let end = end(recording);
    // One interval may have several records.
    let distinct: HashSet<(u16, Range<u64>)> = times(recording).collect();
    let mut lengths: Vec<u64> =
        distinct.into_iter().map(|(_, time)| time.end.saturating_sub(time.start)).collect();
    lengths.sort_unstable();
    let Some(&usual) = lengths.get(lengths.len() / 2) else { return vec![] };
    let length = usual.max(end.div_ceil(SLOTS)).max(1);
    let count = end.div_ceil(length).clamp(1, SLOTS);
    let seconds = |time: u64| time as f64 / 1e9;
    let mut slots: Vec<TimelineSlot> = (0..count)
        .map(|slot| TimelineSlot {
            begin: seconds(slot * length),
            end: seconds(slot.saturating_add(1).saturating_mul(length).min(end)),
            nodes: vec![Totals::default(); shape.nodes],
        })
        .collect();
    for (node, time, row) in recording.rows() {
        let middle = time.start / 2 + time.end / 2;
        let slot = to_usize((middle / length).min(count - 1));
        let Some(totals) = slots[slot].nodes.get_mut(usize::from(node)) else { continue };
        totals.count(row.kind, Amount { count: u64::from(row.count), bytes: row.bytes });
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_monitor::{Direction, Kind};
    use gondwana_recording::{Interval, TransactionRow};

    #[test]
    fn intervals_are_in_the_slot_of_their_middle() {
        let row = TransactionRow {
            address: 0,
            unit: 5,
            kind: Kind::Upgrade,
            direction: Direction::Out,
            peer: 0,
            thread: 0,
            code: 0,
            count: 3,
            bytes: 0,
        };
        let interval = |begin: u64, end: u64| Interval { begin, end, rows: vec![row] };
        let recording = Recording {
            intervals: vec![
                (0, interval(0, 10)),
                (1, interval(2, 12)),
                (0, interval(10, 20)),
                (0, interval(20, 30)),
            ],
            ..Recording::default()
        };
        let slots = timeline(&recording, &Shape { nodes: 2, page_bytes: 4096 });
        let upgrades: Vec<Vec<u64>> =
            slots.iter().map(|slot| slot.nodes.iter().map(|totals| totals.upgrades).collect()).collect();
        assert_eq!(upgrades, [[3, 3], [3, 0], [3, 0]]);
        assert_eq!(slots[2].end, 30e-9);
        assert_eq!(timeline(&Recording::default(), &Shape { nodes: 2, page_bytes: 4096 }), []);
    }
}
