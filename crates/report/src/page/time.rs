//! The time line: an SVG picture for each node, without script.

use super::{limits, words};
use gondwana_analysis::{Analysis, Totals};
use gondwana_console::columns::{grouped, to_whole};
use serde::Serialize;
use std::fmt::Write;

/// The most slots of a page; adjacent slots are merged until there are few enough.
const MOST_SLOTS: usize = 240;
/// The size of the picture of one node, in SVG units.
pub(super) const WIDTH: f64 = 1000.0;
/// See [`WIDTH`].
pub(super) const HEIGHT: f64 = 60.0;

/// Some time of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Slot {
    /// When it began, in seconds.
    begin: f64,
    /// When it ended.
    end: f64,
    /// For each node reads, writes and diffs.
    nodes: Vec<[u64; 3]>,
}

impl Slot {
    fn seconds(&self) -> f64 {
        (self.end - self.begin).max(1e-9)
    }

    /// Of all kinds a second.
    fn rate(&self, node: usize) -> f64 {
        self.nodes.get(node).map_or(0.0, |counts| sum(counts) / self.seconds())
    }
}

/// The time line of all nodes.
pub(super) struct Timeline {
    /// Its slots.
    pub slots: Vec<Slot>,
    /// For each node the outlines of reads, writes and diffs, one above the other: paths of SVG.
    pub nodes: Vec<[String; 3]>,
    /// The scale of a picture: transactions a second at its top.
    pub top: String,
    /// The time in the middle.
    pub middle: String,
    /// When the last slot ends.
    pub end: String,
}

/// The time line of a recording.
pub(super) fn timeline(analysis: &Analysis) -> Timeline {
    let slots = slots(analysis);
    let nodes = analysis.nodes.len().min(limits::MOST_NODES);
    let end = slots.last().map_or(0.0, |slot| slot.end);
    let top = slots.iter().flat_map(|slot| (0..nodes).map(|node| slot.rate(node))).fold(0.0, f64::max);
    let outlines =
        (0..nodes).map(|node| [0, 1, 2].map(|kind| outline(&slots, node, kind, end, top))).collect();
    let [middle, end] = [end / 2.0, end].map(words::seconds);
    Timeline { slots, nodes: outlines, top: grouped(to_whole(top.ceil())), middle, end }
}

/// The slots that have a time, few enough.
fn slots(analysis: &Analysis) -> Vec<Slot> {
    let timed = analysis.timeline.iter().filter(|slot| slot.begin.is_finite() && slot.end.is_finite());
    let timed: Vec<_> = timed.filter(|slot| 0.0 <= slot.begin && slot.begin <= slot.end).collect();
    let together = timed.len().div_ceil(MOST_SLOTS).max(1);
    timed.chunks(together).map(taken_together).collect()
}

fn taken_together(slots: &[&gondwana_analysis::TimelineSlot]) -> Slot {
    let nodes = slots.iter().map(|slot| slot.nodes.len().min(limits::MOST_NODES)).max().unwrap_or(0);
    let sum = |node: usize, kind: fn(&Totals) -> u64| {
        let counts = slots.iter().filter_map(|slot| slot.nodes.get(node)).map(kind);
        counts.fold(0, u64::saturating_add)
    };
    Slot {
        begin: slots[0].begin,
        end: slots.iter().map(|slot| slot.end).fold(0.0, f64::max),
        nodes: (0..nodes)
            .map(|node| [sum(node, |t| t.reads), sum(node, |t| t.writes), sum(node, |t| t.diffs)])
            .collect(),
    }
}

fn sum(counts: &[u64]) -> f64 {
    counts.iter().map(|&count| count as f64).sum()
}

/// One kind of transactions of a node, stacked on the kinds before it.
fn outline(slots: &[Slot], node: usize, kind: usize, end: f64, top: f64) -> String {
    let mut path = String::new();
    for slot in slots {
        let Some(counts) = slot.nodes.get(node).filter(|counts| counts[kind] > 0) else { continue };
        let height = |counts: &[u64]| sum(counts) / slot.seconds() / top * HEIGHT;
        let (left, right) = (slot.begin / end * WIDTH, slot.end / end * WIDTH);
        let (low, high) = (HEIGHT - height(&counts[..kind]), HEIGHT - height(&counts[..=kind]));
        // Writing to a text does not fail.
        let _ = write!(path, "M{left:.1} {low:.1}V{high:.1}H{right:.1}V{low:.1}Z");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_analysis::NodeTotal;

    fn slot(begin: f64, end: f64, reads: u64) -> gondwana_analysis::TimelineSlot {
        let totals = Totals { reads, writes: reads, ..Totals::default() };
        gondwana_analysis::TimelineSlot { begin, end, nodes: vec![totals] }
    }

    fn analysis(timeline: Vec<gondwana_analysis::TimelineSlot>) -> Analysis {
        Analysis { nodes: vec![NodeTotal::default()], timeline, ..Analysis::default() }
    }

    #[test]
    fn the_highest_slot_is_as_high_as_the_picture() {
        let timeline = timeline(&analysis(vec![slot(0.0, 1.0, 5), slot(1.0, 2.0, 10)]));
        assert_eq!(timeline.top, "20");
        assert_eq!(timeline.nodes[0][0], "M0.0 60.0V45.0H500.0V60.0ZM500.0 60.0V30.0H1000.0V60.0Z");
        assert_eq!(timeline.nodes[0][1], "M0.0 45.0V30.0H500.0V45.0ZM500.0 30.0V0.0H1000.0V30.0Z");
        assert_eq!(timeline.nodes[0][2], "");
    }

    #[test]
    fn many_slots_are_taken_together() {
        let many = (0..1000).map(|index| slot(f64::from(index), f64::from(index + 1), 1)).collect();
        let timeline = timeline(&analysis(many));
        assert_eq!(timeline.slots.len(), 200);
        assert_eq!(timeline.slots[0].nodes, [[5, 5, 0]]);
        assert_eq!(timeline.end, "1000 s");
    }

    #[test]
    fn slots_without_a_time_are_left_out() {
        let wrong =
            [slot(f64::NAN, 1.0, 1), slot(0.0, f64::INFINITY, 1), slot(2.0, 1.0, 1), slot(-1.0, 1.0, 1)];
        assert!(timeline(&analysis(wrong.to_vec())).slots.is_empty());
    }
}
