//! The filters of the command line, on this node.

use super::EventSink;
use crate::Node;
use gondwana_locks::lock;
use gondwana_memory::heap::Layout;
use gondwana_memory::{Geometry, PAGE_SIZE};
use gondwana_monitor::{
    Area, BankConfiguration, COUNTERS, Filter, FilterRefinement, FilterText, LARGEST_UNIT, Partition,
};
use gondwana_topology::{Id, NodeId};
use std::ops::Range;
use std::sync::MutexGuard;

impl Node {
    /// Sets filters and reads counters of this node, while its threads run. Counting begins with the first filter.
    pub(super) fn with_configuration<R>(&'static self, call: impl FnOnce(&mut BankConfiguration) -> R) -> R {
        let mut configuration = self.monitor.configuration();
        let result = call(configuration.get_or_insert_default());
        self.connect(&configuration);
        result
    }

    /// Makes the event sink count for the bank as long as a filter is set.
    fn connect(&self, configuration: &MutexGuard<'_, Option<BankConfiguration>>) {
        let bank = configuration
            .as_ref()
            .filter(|configuration| configuration.filters().next().is_some())
            .map(|configuration| configuration.bank().clone());
        let mut core = self.core();
        if core.env.sink.is_none() && bank.is_some() {
            core.env.sink = Some(Box::new(EventSink::new(self.geometry.clone())));
        }
        if let Some(sink) = &mut core.env.sink {
            sink.bank = bank;
        }
    }

    /// Sets the filters of the command line; returns sentences about those that are refused.
    pub(super) fn set_filters(&'static self, texts: &[FilterText]) -> Vec<String> {
        let (mut refused, mut set) = (vec![], vec![]);
        if texts.is_empty() {
            return refused;
        }
        self.with_configuration(|configuration| {
            // Filters that take all free counters come last.
            let takes_rest = |text: &FilterText| matches!(text.area, Area::Heap | Area::All);
            let mut texts = texts.to_vec();
            texts.sort_by_key(takes_rest);
            for (index, text) in texts.iter().enumerate() {
                let later = texts[index..].iter().filter(|text| takes_rest(text)).count();
                let counters = configuration.free_counters() / later.max(1) as u64;
                let filters = resolve(text, &self.geometry, self.heap.layout(), counters);
                let mut set_one = |filter| {
                    self.find_one_sided_reads(&filter);
                    configuration.set(filter).map(|id| set.push(id))
                };
                if let Err(error) = filters.into_iter().try_for_each(&mut set_one) {
                    refused.push(format!("--monitor-filter: {error}"));
                }
            }
        });
        lock(&self.monitor.ordered).extend(set);
        refused
    }

    /// Adaptive refinement of this node's filters.
    pub(super) fn filter_refinement(&self) -> FilterRefinement {
        FilterRefinement::new(watched(&self.geometry, self.heap.layout()))
    }

    /// Removes the filters of the command line.
    pub(super) fn remove_ordered_filters(&'static self) {
        let ordered = std::mem::take(&mut *lock(&self.monitor.ordered));
        if !ordered.is_empty() {
            self.with_configuration(|configuration| {
                for id in ordered {
                    // The program may have removed it.
                    let _ = configuration.remove(id);
                }
            });
        }
    }
}

/// The filters of a text. Filters of the heap take at most as many counters as given, half of them for small blocks.
fn resolve(text: &FilterText, geometry: &Geometry, heap: &Layout, counters: u64) -> Vec<Filter> {
    let unit = 1_u64 << text.filter.unit;
    let whole = |range: Range<u64>| Filter { start: range.start, end: range.end, ..text.filter };
    let mut filters = vec![];
    if let Area::Range(start, end) = text.area {
        filters.push(whole(start..end));
    }
    if matches!(text.area, Area::Data | Area::All) {
        filters.extend(data_ranges(geometry, unit).into_iter().map(whole));
    }
    if matches!(text.area, Area::Heap | Area::All) {
        let taken: u64 = filters.iter().map(Filter::counters).sum();
        let each = counters.saturating_sub(taken) / heap.nodes() as u64;
        let small: Vec<Filter> =
            nodes(heap).filter_map(|node| small_blocks(&text.filter, heap, node, each / 2)).collect();
        let left = each - small.iter().map(Filter::counters).max().unwrap_or(0);
        // First, so that at least large blocks are counted if there are too few filters for all nodes.
        filters.extend(large_blocks(heap, unit, left.saturating_mul(unit)).map(whole));
        filters.extend(small);
    }
    filters.iter_mut().skip(1).for_each(|filter| filter.first = None);
    filters
}

/// A copy of a filter for the small blocks of a node: the beginnings of the regions of all sizes. `None` if a region
/// has no whole unit, or no region gets a counter.
fn small_blocks(like: &Filter, heap: &Layout, node: NodeId, most: u64) -> Option<Filter> {
    let (regions, part) = heap.regions(node)?;
    let unit = 1_u64 << like.unit;
    let bytes = (regions.end - regions.start) as u64;
    let most = most / (bytes >> part);
    let units = u32::try_from(most.min((1_u64 << part) / unit)).unwrap_or(u32::MAX);
    // The first region may begin within a unit, whose other part belongs to another node.
    let start = regions.start as u64 / unit * unit;
    let partition = Some(Partition { part: u8::try_from(part).ok()?, units });
    (units > 0).then_some(Filter { start, end: start + bytes, partition, ..*like })
}

fn nodes(heap: &Layout) -> impl Iterator<Item = NodeId> + use<> {
    (0..heap.nodes()).map(NodeId::from_index)
}

/// The areas that adaptive refinement covers from the start: variables, and of each node's large blocks as much as a
/// quarter of the counters suffices for. Small blocks are spread over too many addresses: they get filters where they
/// are hot.
fn watched(geometry: &Geometry, heap: &Layout) -> Vec<Range<u64>> {
    let most = ((COUNTERS as u64 / 4) << LARGEST_UNIT) / heap.nodes() as u64;
    let heap = large_blocks(heap, 1 << LARGEST_UNIT, most).filter(|range| !range.is_empty());
    data_ranges(geometry, 1).into_iter().chain(heap).collect()
}

/// The part of the heap with pages and large blocks, of each node, at most `most` bytes of it, in whole units.
fn large_blocks(heap: &Layout, unit: u64, most: u64) -> impl Iterator<Item = Range<u64>> {
    let bytes = heap.bytes_per_node() as u64;
    nodes(heap).map(move |node| {
        let start = (heap.rest(node) as u64).next_multiple_of(unit);
        let end = (heap.part(node) as u64 + bytes) / unit * unit;
        start..end.min(start.saturating_add(most / unit * unit)).max(start)
    })
}

/// The variables of the program and its libraries, in whole units.
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

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_page::to_usize;

    const BASE: u64 = gondwana_memory::SPAN_BASE as u64;

    /// The heap of two nodes, and where their large blocks begin.
    fn heap(part: u64) -> (Layout, [u64; 2]) {
        let heap = Layout::new(to_usize(BASE), to_usize(part), 2);
        (heap, [0, 1].map(|node| heap.rest(NodeId(node)) as u64))
    }

    fn filters(text: &str, counters: u64) -> Vec<Filter> {
        let geometry = Geometry::new(1 << 20, &[(0x40_1000, 2), (0x40_4000, 1), (0x80_0000, 1)]);
        resolve(&text.parse().unwrap(), &geometry, &heap(1 << 31).0, counters)
    }

    /// The filters that count all of their range.
    fn ranges(text: &str, counters: u64) -> Vec<(u64, u64)> {
        let filters = filters(text, counters).into_iter().filter(|filter| filter.partition.is_none());
        filters.map(|filter| (filter.start, filter.end)).collect()
    }

    #[test]
    fn areas_stand_for_ranges() {
        assert_eq!(
            ranges("range=data,unit=4K", 0),
            [(0x40_1000, 0x40_3000), (0x40_4000, 0x40_5000), (0x80_0000, 0x80_1000)]
        );
        assert_eq!(ranges("range=data,unit=64K", 0), [(0x40_0000, 0x41_0000), (0x80_0000, 0x81_0000)]);
        let [first, second] = heap(1 << 31).1;
        assert!(first > BASE && second - first == 1 << 31);
        assert_eq!(ranges("range=heap", 8), [(first, first + 0x4000), (second, second + 0x4000)]);
        assert_eq!(
            ranges("range=all,unit=2M", 100)[2..],
            [(first, first + (49 << 21)), (second, second + (49 << 21))]
        );
        assert_eq!(
            ranges("range=heap,unit=2M", u64::MAX)[0],
            (first, BASE + (1 << 31)),
            "no more than there is"
        );
    }

    #[test]
    fn small_blocks_are_counted_in_the_regions_of_all_sizes() {
        // 72 regions of 4 MiB, of which the counters reach 3 pages of each, or all.
        let [first, second] = heap(1 << 31).1;
        for (counters, units, large) in
            [(2 * 2 * (3 * 72 + 71), 3, 3 * 72 + 2 * 71), (u64::MAX, 1 << 10, 1 << 20)]
        {
            let filters = filters("range=heap,counter=7", counters);
            let partition = Some(Partition { part: 22, units });
            let expected = [(first, None), (second, None), (BASE, partition), (BASE + (1 << 31), partition)];
            let found: Vec<_> = filters.iter().map(|filter| (filter.start, filter.partition)).collect();
            assert_eq!(found, expected);
            assert!(filters[0].counters() <= large, "{}", filters[0].counters());
            assert!(filters.iter().map(Filter::counters).sum::<u64>() <= counters);
            assert_eq!(
                filters.iter().map(|filter| filter.first).collect::<Vec<_>>(),
                [Some(7), None, None, None]
            );
            assert_eq!(filters.iter().try_for_each(Filter::check), Ok(()));
        }
        // A unit longer than a region counts none of them apart, and one in which a part begins is counted from its start.
        let geometry = Geometry::new(1 << 20, &[]);
        let starts = |part: u64| {
            let filters = resolve(&"range=heap,unit=2M".parse().unwrap(), &geometry, &heap(part).0, 1 << 19);
            assert_eq!(filters.iter().try_for_each(Filter::check), Ok(()));
            let small = filters.iter().filter(|filter| filter.partition.is_some());
            small.map(|filter| filter.start).collect::<Vec<_>>()
        };
        assert!(starts(1 << 28).is_empty());
        assert_eq!(starts((1 << 32) + (1 << 20)), [BASE, BASE + (1 << 32)]);
    }

    #[test]
    fn what_is_watched_leaves_counters_for_a_closer_look() {
        let geometry = Geometry::new(1 << 20, &[(0x40_1000, 2), (0x40_4000, 1)]);
        let data = [0x40_1000..0x40_3000, 0x40_4000..0x40_5000];
        let most = 128 << 30;
        let (wide, starts) = heap(2 << 40);
        let watched_parts = watched(&geometry, &wide);
        assert_eq!(watched_parts[..2], data);
        assert_eq!(watched_parts[2..], starts.map(|start| start..start + most));
        // Parts that begin within a unit, without regions for small blocks.
        let (narrow, _) = heap(3 << 20);
        assert_eq!(
            watched(&geometry, &narrow)[2..],
            [BASE..BASE + (2 << 20), BASE + (4 << 20)..BASE + (6 << 20)]
        );
    }
}
