//! The counts of the filters of all counter banks.

use crate::{BankFilter, HotUnit};
use gondwana_monitor::{Kind, Kinds};
use gondwana_recording::{FilterCounts, Recording};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// The most units that are listed for a filter: the hottest.
const UNITS: usize = 8;

/// The identity of a filter over several nodes and times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    own: bool,
    unit: u8,
    start: u64,
    end: u64,
    kinds: u16,
    /// Filters that differ only in what is not recorded are in the same order on all nodes.
    number: usize,
}

#[derive(Default)]
struct Sum {
    time: Option<Range<u64>>,
    nodes: Vec<u64>,
    units: BTreeMap<u32, u64>,
}

/// The filters that users requested, then those of adaptive refinement: smallest units first, and of equal units the
/// hottest first. Their units have no names yet.
pub(crate) fn filters(recording: &Recording, nodes: usize) -> Vec<BankFilter> {
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    // The last requested filter of each node, and its last unit: the parts of a filter follow each other.
    let mut last: BTreeMap<u16, (Key, u32)> = BTreeMap::new();
    for (node, bank) in recording.banks.iter().filter(|(node, _)| usize::from(*node) < nodes) {
        for counts in &bank.filters {
            let mut key = key(counts, false);
            let first = counts.counters.first().map(|counted| counted.unit);
            if let Some((before, unit)) = last.get(node)
                && (Key { number: 0, ..*before }) == key
            {
                key.number = before.number + usize::from(first.is_none_or(|first| first <= *unit));
            }
            last.insert(*node, (key, counts.counters.last().map_or(u32::MAX, |counted| counted.unit)));
            add(sums.entry(key).or_default(), 0..bank.time, usize::from(*node), nodes, counts);
        }
    }
    for (node, watched) in recording.watched.iter().filter(|(node, _)| usize::from(*node) < nodes) {
        let sum = sums.entry(key(&watched.filter, true)).or_default();
        add(sum, watched.begin..watched.end, usize::from(*node), nodes, &watched.filter);
    }
    let mut filters: Vec<BankFilter> = sums.into_iter().map(|(key, sum)| filter(key, sum)).collect();
    filters.retain(|filter| !filter.own || filter.counted() > 0);
    filters.sort_by_key(|filter| {
        let place = if filter.own { (filter.unit, Reverse(filter.counted())) } else { (0, Reverse(0)) };
        (filter.own, place, filter.range.start)
    });
    filters
}

fn key(counts: &FilterCounts, own: bool) -> Key {
    let FilterCounts { start, end, unit, kinds, .. } = *counts;
    Key { own, unit, start, end, kinds, number: 0 }
}

fn add(sum: &mut Sum, time: Range<u64>, node: usize, nodes: usize, counts: &FilterCounts) {
    sum.nodes.resize(nodes, 0);
    for counted in &counts.counters {
        let unit = sum.units.entry(counted.unit).or_default();
        *unit = unit.saturating_add(counted.count);
        sum.nodes[node] = sum.nodes[node].saturating_add(counted.count);
    }
    let all = sum.time.get_or_insert(time.clone());
    *all = all.start.min(time.start)..all.end.max(time.end);
}

fn filter(key: Key, sum: Sum) -> BankFilter {
    // A recording may hold any numbers.
    let bytes = 1_u64.checked_shl(key.unit.into()).unwrap_or(u64::MAX);
    let mut units: Vec<(u32, u64)> = sum.units.into_iter().collect();
    units.sort_by_key(|&(unit, counted)| (Reverse(counted), unit));
    let hot = |(unit, counted): (u32, u64)| HotUnit {
        address: key.start.saturating_add(u64::from(unit).saturating_mul(bytes)),
        counted,
        name: String::new(),
    };
    let time = sum.time.unwrap_or_default();
    BankFilter {
        range: key.start..key.end,
        unit: bytes,
        kinds: Kinds::from_bits(key.kinds).iter().map(Kind::name).map(str::to_owned).collect(),
        own: key.own,
        seconds: time.start as f64 / 1e9..time.end as f64 / 1e9,
        nodes: sum.nodes,
        hottest: units.into_iter().take(UNITS).map(hot).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_recording::{BankRecord, Counted, RetiredFilterRecord};

    fn counts(start: u64, unit: u8, counters: &[(u32, u64)]) -> FilterCounts {
        let counters = counters.iter().map(|&(unit, count)| Counted { unit, count }).collect();
        FilterCounts { start, end: start + 0x4000, unit, kinds: 3, counters }
    }

    fn bank(filter: FilterCounts) -> BankRecord {
        BankRecord { time: 2_000_000_000, filters: vec![filter] }
    }

    #[test]
    fn filters_of_all_nodes_are_put_together() {
        let banks = vec![
            (0, bank(counts(0x1000, 12, &[(0, 3)]))),
            // Another one, which counts the other direction.
            (0, bank(counts(0x1000, 12, &[(0, 5)]))),
            // In two parts.
            (1, bank(counts(0x1000, 12, &[(0, 1)]))),
            (1, bank(counts(0x1000, 12, &[(2, 9)]))),
            (1, bank(counts(0x1000, 12, &[]))),
        ];
        let filters = filters(&Recording { banks, ..Recording::default() }, 2);
        let found: Vec<_> = filters.iter().map(|filter| (&filter.nodes[..], filter.hottest.len())).collect();
        assert_eq!(found, [(&[3, 10][..], 2), (&[5, 0], 1)]);
        assert_eq!((filters[0].hottest[0].address, filters[0].hottest[0].counted), (0x3000, 9));
        assert_eq!((filters[0].own, filters[0].seconds.end), (false, 2.0));
        assert_eq!(filters[0].kinds, ["read", "write"]);
    }

    #[test]
    fn filters_that_have_moved_are_listed_by_how_close_they_looked() {
        let watched = |begin, end, filter| (1, RetiredFilterRecord { begin, end, filter });
        let watched = vec![
            watched(0, 5, counts(0x20_0000, 21, &[(0, 100)])),
            watched(5, 7, counts(0x20_0000, 12, &[(1, 40)])),
            watched(7, 9, counts(0x20_1000, 5, &[(1, 10)])),
            watched(12, 15, counts(0x20_1000, 5, &[(1, 20), (2, 1)])),
            watched(7, 9, counts(0x20_8000, 5, &[])),
        ];
        let banks = vec![(0, bank(counts(0x1000, 12, &[])))];
        let filters = filters(&Recording { watched, banks, ..Recording::default() }, 2);
        let found: Vec<_> =
            filters.iter().map(|filter| (filter.own, filter.unit, filter.counted())).collect();
        assert_eq!(found, [(false, 4096, 0), (true, 32, 31), (true, 4096, 40), (true, 1 << 21, 100)]);
        assert_eq!(filters[1].seconds, 7e-9..15e-9);
        assert_eq!((filters[1].hottest[0].address, filters[1].hottest[0].counted), (0x20_1020, 30));
    }
}
