//! Ranges of addresses, in which later ranges hide what they cover of earlier ones.

use crate::range_set::common;
use std::collections::BTreeMap;
use std::ops::Range;

/// The visible ranges and their values.
#[derive(Clone, Debug)]
pub(crate) struct Layer<T> {
    /// By first address: the end and the value.
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Layer<T> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<T: Copy> Layer<T> {
    /// Adds a range. Takes logarithmic time on average.
    pub(crate) fn put(&mut self, range: Range<u64>, what: T) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &(end, below))) = self.ranges.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.ranges.remove(&start);
            if end > range.end {
                self.ranges.insert(range.end, (end, below));
            }
            if start < range.start {
                self.ranges.insert(start, (range.start, below));
            }
        }
        self.ranges.insert(range.start, (range.end, what));
    }

    /// The value at an address.
    pub(crate) fn at(&self, address: u64) -> Option<T> {
        let (_, &(end, what)) = self.ranges.range(..=address).next_back()?;
        (address < end).then_some(what)
    }

    /// The visible ranges within a range, in ascending order.
    pub(crate) fn within(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, T)> {
        let first = self.ranges.range(..=range.start).next_back().map_or(range.start, |(&start, _)| start);
        let range = range.clone();
        let found = self.ranges.range(first..range.end.max(first));
        found
            .map(move |(&start, &(end, what))| (common(&(start..end), &range), what))
            .filter(|(r, _)| !r.is_empty())
    }

    /// All visible ranges, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, T)> {
        self.ranges.iter().map(|(&start, &(end, what))| (start..end, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_page::to_usize;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_latest_is_what_is_seen(
            puts in prop::collection::vec((0_usize..50, 0_usize..20), 0..20),
            window in (0_u64..60, 0_u64..20),
        ) {
            let mut layer = Layer::default();
            let mut plain = [None; 80];
            for (index, &(start, length)) in puts.iter().enumerate() {
                layer.put(start as u64..(start + length) as u64, index);
                plain[start..start + length].fill(Some(index));
            }
            for (address, expected) in (0..).zip(plain) {
                prop_assert_eq!(layer.at(address), expected);
            }
            let window = window.0..window.0 + window.1;
            let mut seen = [None; 80];
            for (range, index) in layer.within(&window) {
                prop_assert!(range.start >= window.start && range.end <= window.end);
                range.for_each(|address| seen[to_usize(address)] = Some(index));
            }
            for (address, (seen, plain)) in (0..).zip(seen.into_iter().zip(plain)) {
                prop_assert_eq!(seen, plain.filter(|_| window.contains(&address)));
            }
        }
    }
}
