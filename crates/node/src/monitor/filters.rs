//! Filters of the command line, on this node.

use super::Tap;
use crate::Node;
use gondwana_memory::{Geometry, PAGE_SIZE};
use gondwana_monitor::{Area, COUNTERS, Filter, FilterError, FilterText, LARGEST_UNIT, Panel, Zoom};
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

impl Node {
    /// Sets filters and reads counters of this node, while its threads go on. Counting begins with the first filter.
    pub(super) fn with_panel<R>(&'static self, call: impl FnOnce(&mut Panel) -> R) -> R {
        let mut panel = self.monitor.panel();
        let result = call(panel.get_or_insert_default());
        self.connect(&panel);
        result
    }

    /// Has the tap count for the board, as long as a filter is set.
    fn connect(&self, panel: &MutexGuard<'_, Option<Panel>>) {
        let board = panel
            .as_ref()
            .filter(|panel| panel.filters().next().is_some())
            .map(|panel| panel.board().clone());
        let mut core = self.core();
        if core.ports.tap.is_none() && board.is_some() {
            core.ports.tap = Some(Box::new(Tap::new(self.me, self.geometry.clone())));
        }
        if let Some(tap) = &mut core.ports.tap {
            tap.board = board;
        }
    }

    /// Sets the filters of the command line. Says which cannot be set.
    pub(super) fn set_filters(&'static self, texts: &[FilterText]) -> Vec<String> {
        let (mut refused, mut set) = (vec![], vec![]);
        let part = crate::start::part(&self.boot);
        self.with_panel(|panel| {
            for (index, text) in texts.iter().enumerate() {
                let later =
                    texts[index..].iter().filter(|text| matches!(text.area, Area::Heap | Area::All)).count();
                let counters = panel.free_counters() / later.max(1) as u64;
                let filters = resolve(text, &self.geometry, part, self.boot.nodes, counters);
                let mut set_one = |filter| panel.set(filter).map(|id| set.push(id));
                if let Err(error) = filters.into_iter().try_for_each(&mut set_one) {
                    refused.push(format!("--monitor-filter: {error}"));
                }
            }
        });
        self.monitor.ordered.lock().unwrap_or_else(PoisonError::into_inner).extend(set);
        refused
    }

    /// Filters that look for what is hot by themselves.
    pub(super) fn zoom(&self) -> Zoom {
        Zoom::new(watched(&self.geometry, crate::start::part(&self.boot), self.boot.nodes))
    }

    /// Takes away the filters of the command line.
    pub(super) fn remove_ordered_filters(&'static self) {
        let ordered =
            std::mem::take(&mut *self.monitor.ordered.lock().unwrap_or_else(PoisonError::into_inner));
        if !ordered.is_empty() {
            self.with_panel(|panel| {
                for id in ordered {
                    // The program may have taken it away.
                    let _ = panel.remove(id);
                }
            });
        }
    }
}

/// The filters that a text stands for. Those of the heap take as many counters as given: from the beginning of each
/// node's part on, which is where memory is allocated first.
fn resolve(text: &FilterText, geometry: &Geometry, part: u64, nodes: u16, counters: u64) -> Vec<Filter> {
    let unit = 1_u64 << text.filter.unit;
    let mut ranges: Vec<Range<u64>> = vec![];
    if let Area::Range(start, end) = text.area {
        ranges.push(start..end);
    }
    if matches!(text.area, Area::Data | Area::All) {
        ranges.extend(data_ranges(geometry, unit));
    }
    if matches!(text.area, Area::Heap | Area::All) {
        let taken: u64 = ranges.iter().map(|range| (range.end - range.start) / unit).sum();
        let length =
            (counters.saturating_sub(taken) / u64::from(nodes)).saturating_mul(unit).min(part / unit * unit);
        let first = geometry.span().base as u64;
        let parts = (0..u64::from(nodes)).map(|node| (first + node * part).next_multiple_of(unit));
        ranges.extend(parts.map(|start| start..start + length));
    }
    let mut first = text.filter.first;
    let filter =
        |range: Range<u64>| Filter { start: range.start, end: range.end, first: first.take(), ..text.filter };
    ranges.into_iter().map(filter).collect()
}

/// What is watched where nobody has said what: variables, and of each node's part of the heap as much from its beginning on,
/// which is where memory is allocated first, as a quarter of the counters can be about.
fn watched(geometry: &Geometry, part: u64, nodes: u16) -> Vec<Range<u64>> {
    let down = |address: u64| address >> LARGEST_UNIT << LARGEST_UNIT;
    let most = down(((COUNTERS as u64 / 4) << LARGEST_UNIT) / u64::from(nodes));
    let first = geometry.span().base as u64;
    let start = |node: u64| down(first + node * part);
    let heap = (0..u64::from(nodes)).map(|node| start(node)..start(node + 1).min(start(node) + most));
    data_ranges(geometry, 1).into_iter().chain(heap).filter(|range| !range.is_empty()).collect()
}

/// Where the variables of the program and its libraries are, in whole units.
fn data_ranges(geometry: &Geometry, unit: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = vec![];
    for data in geometry.overlays() {
        let (start, end) = (data.base as u64, data.base as u64 + u64::from(data.pages) * PAGE_SIZE as u64);
        let range = start / unit * unit..end.next_multiple_of(unit);
        match ranges.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = range.end.max(last.end),
            None => ranges.push(range),
        }
    }
    ranges
}

/// What is wrong with filters before it is known where the program's data will be.
///
/// # Errors
/// Of the first filter that cannot be set beside those before it.
pub fn check(texts: &[FilterText]) -> Result<(), FilterError> {
    let mut panel = Panel::default();
    let ranges = texts.iter().filter(|text| matches!(text.area, Area::Range(..)));
    ranges.map(|text| text.filter).try_for_each(|filter| panel.set(filter).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str, counters: u64) -> Vec<(u64, u64)> {
        let geometry = Geometry::new(1 << 20, &[(0x40_1000, 2), (0x40_4000, 1), (0x80_0000, 1)]);
        let filters = resolve(&text.parse().unwrap(), &geometry, 1 << 31, 2, counters);
        filters.iter().map(|filter| (filter.start, filter.end)).collect()
    }

    #[test]
    fn areas_stand_for_ranges() {
        let base = gondwana_memory::SPAN_BASE as u64;
        assert_eq!(
            ranges("range=data,unit=4K", 0),
            [(0x40_1000, 0x40_3000), (0x40_4000, 0x40_5000), (0x80_0000, 0x80_1000)]
        );
        assert_eq!(ranges("range=data,unit=64K", 0), [(0x40_0000, 0x41_0000), (0x80_0000, 0x81_0000)]);
        let second = base + (1 << 31);
        assert_eq!(ranges("range=heap", 8), [(base, base + 0x4000), (second, second + 0x4000)]);
        assert_eq!(
            ranges("range=all,unit=2M", 100)[2..],
            [(base, base + (49 << 21)), (second, second + (49 << 21))]
        );
        assert_eq!(
            ranges("range=heap,unit=2M", u64::MAX)[0],
            (base, base + (1 << 31)),
            "no more than there is"
        );
    }

    #[test]
    fn what_is_watched_leaves_counters_for_a_closer_look() {
        let geometry = Geometry::new(1 << 20, &[(0x40_1000, 2), (0x40_4000, 1)]);
        let base = gondwana_memory::SPAN_BASE as u64;
        let data = [0x40_1000..0x40_3000, 0x40_4000..0x40_5000];
        // 4 TiB for two nodes, and parts that begin within a unit.
        let (part, most) = (2 << 40, 128 << 30);
        assert_eq!(watched(&geometry, part, 2)[..2], data);
        assert_eq!(watched(&geometry, part, 2)[2..], [base..base + most, base + part..base + part + most]);
        let part = 3 << 20;
        assert_eq!(
            watched(&geometry, part, 2)[2..],
            [base..base + (2 << 20), base + (2 << 20)..base + (6 << 20)]
        );
    }

    #[test]
    fn filters_are_checked_against_each_other() {
        let filters =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<FilterText>>();
        assert_eq!(check(&filters(&["range=0x1000-0x2000", "range=0x2000-0x3000", "range=heap"])), Ok(()));
        let overlapping = check(&filters(&["range=0x1000-0x3000", "range=0x2000-0x4000"]));
        assert_eq!(overlapping, Err(FilterError::Overlapping { start: 0x1000, end: 0x3000 }));
    }
}
