//! Sets of addresses, as ranges.

use std::ops::Range;

/// The addresses that two ranges have in common; empty if there are none.
pub(crate) fn common(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// The length of a range.
pub(crate) fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// A set of addresses, as ascending ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet(Vec<Range<u64>>);

impl RangeSet {
    /// Adds a range.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let from = self.0.partition_point(|known| known.end < range.start);
        let to = self.0.partition_point(|known| known.start <= range.end);
        let whole = match self.0.get(from..to) {
            Some([first, .., last]) => first.start.min(range.start)..last.end.max(range.end),
            Some([only]) => only.start.min(range.start)..only.end.max(range.end),
            _ => range,
        };
        self.0.splice(from..to, [whole]);
    }

    /// Adds all addresses of another set.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|range| self.add(range.clone()));
    }

    /// The intersection of both sets.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let mut found = vec![];
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&a), Some(&b)) = (mine.peek(), theirs.peek()) {
            let both = common(a, b);
            if !both.is_empty() {
                found.push(both);
            }
            if a.end <= b.end {
                mine.next()
            } else {
                theirs.next()
            };
        }
        Self(found)
    }

    /// The difference: this set without the other.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut left = vec![];
        for range in &self.0 {
            let mut at = range.start;
            for hole in other.within(range).0 {
                left.push(at..hole.start);
                at = hole.end;
            }
            left.push(at..range.end);
        }
        left.into_iter().collect()
    }

    /// The part of the set that is within a range.
    pub(crate) fn within(&self, range: &Range<u64>) -> Self {
        let from = self.0.partition_point(|known| known.end <= range.start);
        let inside = self.0[from..].iter().take_while(|known| known.start < range.end);
        Self(inside.map(|known| common(known, range)).filter(|both| !both.is_empty()).collect())
    }

    /// True if an address of the range is in the set.
    pub(crate) fn meets(&self, range: &Range<u64>) -> bool {
        let from = self.0.partition_point(|known| known.end <= range.start);
        !range.is_empty() && self.0.get(from).is_some_and(|known| known.start < range.end)
    }

    /// True if the sets have an address in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().any(|range| other.meets(range))
    }

    /// True if the other set is a subset of this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|range| self.within(range).length() == length(range))
    }

    /// The number of addresses.
    pub(crate) fn length(&self) -> u64 {
        self.0.iter().map(length).sum()
    }

    /// True if the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges.
    pub(crate) fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }
}

/// The union of ranges in any order.
impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut span = Self::default();
        for range in ranges {
            match span.0.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => span.0.push(range),
            }
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0_u64..60, 0_u64..10).prop_map(|(start, length)| start..start + length), 0..8)
    }

    fn elements(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn spans_are_sets(a in ranges(), b in ranges(), probe in ranges()) {
            let (x, y): (RangeSet, RangeSet) = (a.iter().cloned().collect(), b.iter().cloned().collect());
            let (p, q) = (elements(&a), elements(&b));
            let mut added = RangeSet::default();
            a.iter().for_each(|range| added.add(range.clone()));
            prop_assert_eq!(&added, &x);
            prop_assert_eq!(x.length(), p.len() as u64);
            prop_assert_eq!(elements(x.common(&y).ranges()), p.intersection(&q).copied().collect());
            prop_assert_eq!(elements(x.without(&y).ranges()), p.difference(&q).copied().collect());
            prop_assert_eq!(x.overlaps(&y), !p.is_disjoint(&q));
            prop_assert_eq!(x.covers(&y), p.is_superset(&q));
            added.add_all(&y);
            prop_assert_eq!(elements(added.ranges()), p.union(&q).copied().collect());
            prop_assert!(added.ranges().windows(2).all(|pair| pair[0].end < pair[1].start));
            for range in probe {
                let inside: BTreeSet<u64> = range.clone().filter(|address| p.contains(address)).collect();
                prop_assert_eq!(x.meets(&range), !inside.is_empty());
                prop_assert_eq!(elements(x.within(&range).ranges()), inside);
            }
        }
    }
}
