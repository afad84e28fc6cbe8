//! Filters that are about the beginnings of equal parts of a range: regions that fill up from their start.

use crate::{Filter, FilterError};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Equal parts of a range, of which each is counted from its start on as far as its counters reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stride {
    /// log2 of the bytes of a part.
    pub part: u8,
    /// How many units of each part have a counter.
    pub units: u32,
}

impl Stride {
    /// The stride as one number, which is not 0.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.part) | u64::from(self.units) << 8
    }

    /// What was packed; nothing of 0.
    pub(crate) fn unpack(packed: u64) -> Option<Self> {
        (packed != 0).then_some(Self { part: packed as u8 & 63, units: (packed >> 8) as u32 })
    }

    /// The counter of a byte, by its distance from the start of the filter; nothing if the counters do not reach it. A row
    /// of a bank may be a mixture of two filters while it is changed: whatever this holds, there is an answer.
    #[inline]
    pub(crate) fn counter(self, offset: u64, unit: u8) -> Option<u64> {
        let inside = (offset & ((1 << self.part) - 1)) >> unit;
        let units = u64::from(self.units);
        (inside < units).then(|| (offset >> self.part).saturating_mul(units).saturating_add(inside))
    }
}

impl Filter {
    /// How many counters it takes.
    #[must_use]
    pub fn counters(&self) -> u64 {
        let bytes = self.end.saturating_sub(self.start);
        match self.stride {
            None => bytes >> self.unit.min(63),
            Some(stride) => (bytes >> stride.part.min(63)).saturating_mul(stride.units.into()),
        }
    }

    /// The first address that one of its counters is about.
    #[must_use]
    pub fn address(&self, counter: u64) -> u64 {
        let offset = match self.stride {
            None => counter << self.unit,
            Some(Stride { part, units }) => {
                let units = u64::from(units);
                ((counter / units) << part) + ((counter % units) << self.unit)
            }
        };
        self.start + offset
    }

    /// The addresses that are counted.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let Self { start, end, unit, .. } = *self;
        let part = self.stride.map_or(end - start, |stride| 1 << stride.part);
        let counted = self.stride.map_or(part, |stride| u64::from(stride.units) << unit);
        let parts = (end - start).checked_div(part).unwrap_or(0);
        (0..parts).map(move |index| start + index * part..start + index * part + counted)
    }

    /// Says what is wrong with the parts of its range.
    pub(crate) fn check_stride(&self) -> Result<(), FilterError> {
        let Some(Stride { part, units }) = self.stride else { return Ok(()) };
        let is_right = (self.unit..64).contains(&part)
            && (self.end - self.start).is_multiple_of(1 << part)
            && (1..=1_u64 << (part - self.unit)).contains(&units.into());
        if is_right { Ok(()) } else { Err(FilterError::Stride) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(text: &str, stride: Stride) -> Filter {
        Filter { stride: Some(stride), ..text.parse::<crate::FilterText>().unwrap().filter }
    }

    #[test]
    fn counters_are_about_the_beginnings_of_parts() {
        let filter = filter("range=0x11000-0x19000", Stride { part: 14, units: 2 });
        assert_eq!(filter.check(), Ok(()));
        assert_eq!(filter.counters(), 4);
        assert_eq!(filter.ranges().collect::<Vec<_>>(), [0x11000..0x13000, 0x15000..0x17000]);
        assert_eq!([0, 1, 2, 3].map(|counter| filter.address(counter)), [0x11000, 0x12000, 0x15000, 0x16000]);
    }

    #[test]
    fn parts_are_whole_and_have_room_for_their_units() {
        for (stride, is_right) in [
            (Stride { part: 12, units: 1 }, true),
            (Stride { part: 15, units: 8 }, true),
            (Stride { part: 15, units: 9 }, false),
            (Stride { part: 14, units: 0 }, false),
            (Stride { part: 16, units: 1 }, false),
            (Stride { part: 11, units: 1 }, false),
            (Stride { part: 64, units: 1 }, false),
        ] {
            let checked = filter("range=0x1000-0x9000", stride).check();
            assert_eq!(checked, if is_right { Ok(()) } else { Err(FilterError::Stride) }, "{stride:?}");
        }
    }

    proptest! {
        #[test]
        fn each_counter_has_the_addresses_that_it_counts(
            parts in 1u64..5, part in 12u8..16, unit in 5u8..12, units in 1u32..1024, offset in 0u64..1 << 18,
        ) {
            let stride = Stride { part, units: units.min(1 << (part - unit)) };
            prop_assert_eq!(Stride::unpack(stride.pack()), Some(stride));
            let mut filter = filter("range=0x10000-0x20000", stride);
            (filter.unit, filter.end) = (unit, filter.start + (parts << part));
            let address = filter.start + offset % (parts << part);
            let counter = stride.counter(address - filter.start, unit);
            prop_assert_eq!(counter.is_some(), filter.ranges().any(|range| range.contains(&address)));
            if let Some(counter) = counter {
                prop_assert!(counter < filter.counters());
                prop_assert_eq!(filter.address(counter), address >> unit << unit);
            }
        }
    }
}
