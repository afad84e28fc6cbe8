//! Partitioned filters: they count the beginning of each equal part of a range, such as the heap's regions, which
//! fill up from their start.

use crate::{Filter, FilterError};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A partition of a range into equal parts, each of which is counted from its start on, as far as its counters reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Partition {
    /// log2 of the bytes of a part.
    pub part: u8,
    /// The number of units of each part that have a counter.
    pub units: u32,
}

impl Partition {
    /// The partition as one number, which is not 0.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.part) | u64::from(self.units) << 8
    }

    /// The inverse of [`Partition::pack`]; `None` for 0.
    pub(crate) fn unpack(packed: u64) -> Option<Self> {
        (packed != 0).then_some(Self { part: (packed & 63) as u8, units: (packed >> 8 & 0xffff_ffff) as u32 })
    }

    /// The counter of a byte, by its distance from the start of the filter; `None` if the counters do not reach it.
    /// It must not panic for any values: a row of a bank may be a mixture of two filters while it is changed.
    #[inline]
    pub(crate) fn counter(self, offset: u64, unit: u8) -> Option<u64> {
        let inside = (offset & ((1 << self.part) - 1)) >> unit;
        let units = u64::from(self.units);
        (inside < units).then(|| (offset >> self.part).saturating_mul(units).saturating_add(inside))
    }
}

impl Filter {
    /// The number of its counters.
    #[must_use]
    pub fn counters(&self) -> u64 {
        let bytes = self.end.saturating_sub(self.start);
        match self.partition {
            None => bytes >> self.unit.min(63),
            Some(partition) => (bytes >> partition.part.min(63)).saturating_mul(partition.units.into()),
        }
    }

    /// The first address of one of its counters.
    #[must_use]
    pub fn address(&self, counter: u64) -> u64 {
        let offset = match self.partition {
            None => counter << self.unit,
            Some(Partition { part, units }) => {
                let units = u64::from(units);
                ((counter / units) << part) + ((counter % units) << self.unit)
            }
        };
        self.start + offset
    }

    /// The addresses that are counted.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let Self { start, end, unit, .. } = *self;
        let part = self.partition.map_or(end - start, |partition| 1 << partition.part);
        let counted = self.partition.map_or(part, |partition| u64::from(partition.units) << unit);
        let parts = (end - start).checked_div(part).unwrap_or(0);
        (0..parts).map(move |index| start + index * part..start + index * part + counted)
    }

    /// Checks the partition of its range.
    pub(crate) fn check_partition(&self) -> Result<(), FilterError> {
        let Some(Partition { part, units }) = self.partition else { return Ok(()) };
        let is_right = (self.unit..64).contains(&part)
            && (self.end - self.start).is_multiple_of(1 << part)
            && (1..=1_u64 << (part - self.unit)).contains(&units.into());
        if is_right { Ok(()) } else { Err(FilterError::Partition) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(text: &str, partition: Partition) -> Filter {
        Filter { partition: Some(partition), ..text.parse::<crate::FilterText>().unwrap().filter }
    }

    #[test]
    fn counters_are_about_the_beginnings_of_parts() {
        let filter = filter("range=0x11000-0x19000", Partition { part: 14, units: 2 });
        assert_eq!(filter.check(), Ok(()));
        assert_eq!(filter.counters(), 4);
        assert_eq!(filter.ranges().collect::<Vec<_>>(), [0x11000..0x13000, 0x15000..0x17000]);
        assert_eq!([0, 1, 2, 3].map(|counter| filter.address(counter)), [0x11000, 0x12000, 0x15000, 0x16000]);
    }

    #[test]
    fn parts_are_whole_and_have_room_for_their_units() {
        for (partition, is_right) in [
            (Partition { part: 12, units: 1 }, true),
            (Partition { part: 15, units: 8 }, true),
            (Partition { part: 15, units: 9 }, false),
            (Partition { part: 14, units: 0 }, false),
            (Partition { part: 16, units: 1 }, false),
            (Partition { part: 11, units: 1 }, false),
            (Partition { part: 64, units: 1 }, false),
        ] {
            let checked = filter("range=0x1000-0x9000", partition).check();
            assert_eq!(checked, if is_right { Ok(()) } else { Err(FilterError::Partition) }, "{partition:?}");
        }
    }

    proptest! {
        #[test]
        fn each_counter_has_the_addresses_that_it_counts(
            parts in 1u64..5, part in 12u8..16, unit in 5u8..12, units in 1u32..1024, offset in 0u64..1 << 18,
        ) {
            let partition = Partition { part, units: units.min(1 << (part - unit)) };
            prop_assert_eq!(Partition::unpack(partition.pack()), Some(partition));
            let mut filter = filter("range=0x10000-0x20000", partition);
            (filter.unit, filter.end) = (unit, filter.start + (parts << part));
            let address = filter.start + offset % (parts << part);
            let counter = partition.counter(address - filter.start, unit);
            prop_assert_eq!(counter.is_some(), filter.ranges().any(|range| range.contains(&address)));
            if let Some(counter) = counter {
                prop_assert!(counter < filter.counters());
                prop_assert_eq!(filter.address(counter), address >> unit << unit);
            }
        }
    }
}
