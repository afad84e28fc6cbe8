//! Adaptive refinement of the units of the aggregation table: large units of memory, and smaller ones where most
//! transactions occur (Olifant, section 6, with more than its two steps).
//!
//! [`FilterRefinement`](crate::FilterRefinement) does the same for the filters of a counter bank.

use crate::Aggregate;
use crate::heat::Heat;

/// The units, as powers of two of bytes: 64 KiB, a page, 256 and 32 bytes.
const UNITS: [u8; 4] = [16, 12, 8, 5];

/// Steps from one unit to the next.
const STEPS: usize = UNITS.len() - 1;

/// The most units of one size that are divided.
const MOST: usize = 512;

/// The present size of each unit of memory. Memory that is not hot has units of 64 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// The numbers of the divided units of each size, in ascending order.
    divided: [Vec<u64>; STEPS],
}

impl Units {
    /// The largest unit.
    pub const LARGEST: u8 = UNITS[0];

    /// log2 of the bytes of the unit that holds an address.
    #[must_use]
    pub fn unit_of(&self, address: u64) -> u8 {
        let divided = |step: &usize| self.divided[*step].binary_search(&(address >> UNITS[*step])).is_ok();
        UNITS[(0..STEPS).take_while(divided).count()]
    }
}

/// Learns which units are hot. The same transactions always lead to the same units.
#[derive(Clone, Debug, Default)]
pub struct UnitRefinement {
    /// The heat of the units of each size but the smallest.
    heat: [Heat; STEPS],
}

impl UnitRefinement {
    /// Learns from the rows of one interval; returns the units for the next.
    pub fn learn(&mut self, aggregates: &[Aggregate]) -> Units {
        self.heat.iter_mut().for_each(Heat::cool);
        for aggregate in aggregates {
            let closest = aggregate.key.part();
            // Only rows about a unit or about parts of it show that the unit is hot.
            for (heat, unit) in self.heat.iter_mut().zip(UNITS).filter(|&(_, unit)| closest <= unit) {
                aggregate.parts().for_each(|(address, count)| heat.add(address >> unit, count));
            }
        }
        Units { divided: std::array::from_fn(|step| hottest(&self.heat[step])) }
    }
}

/// The units of one size to be divided, in ascending order.
fn hottest(heat: &Heat) -> Vec<u64> {
    let mut hot = heat.hottest(MOST, |_| 1);
    hot.sort_unstable();
    hot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AggregationTable, Direction, Kind, Transaction};
    use proptest::prelude::*;

    /// An aggregation table with accesses to addresses, in the present units, each with its count.
    fn interval(units: &Units, accesses: &[(u64, u32)]) -> AggregationTable {
        let mut table = AggregationTable::default();
        for &(address, count) in accesses {
            let transaction = Transaction {
                kind: Kind::Read,
                direction: Direction::Out,
                address,
                bytes: 4096,
                peer: 1,
                thread: None,
                code: 0,
            };
            (0..count).for_each(|_| table.note(&transaction, units.unit_of(address)));
        }
        table
    }

    #[test]
    fn the_hottest_areas_are_seen_more_and_more_closely() {
        let hot = 0x1234_5678;
        let (mut refine, mut units) = (UnitRefinement::default(), Units::default());
        let mut seen = vec![];
        for _ in 0..5 {
            let accesses: Vec<(u64, u32)> =
                (0..20).map(|area| (area << 16, 1)).chain([(hot, 1000)]).collect();
            seen.push(units.unit_of(hot));
            assert_eq!(units.unit_of(3 << 16), 16, "an area where little happens");
            units = refine.learn(interval(&units, &accesses).rows());
        }
        assert_eq!(seen, [16, 12, 8, 5, 5]);
    }

    #[test]
    fn what_has_become_cold_is_seen_from_afar_again() {
        let (first, second) = (0x10_0000, 0x90_0000);
        let (mut refine, mut units) = (UnitRefinement::default(), Units::default());
        for _ in 0..4 {
            units = refine.learn(interval(&units, &[(first, 100)]).rows());
        }
        assert_eq!((units.unit_of(first), units.unit_of(second)), (5, 16));
        for _ in 0..8 {
            units = refine.learn(interval(&units, &[(second, 100)]).rows());
        }
        assert_eq!((units.unit_of(first), units.unit_of(second)), (16, 5));
    }

    proptest! {
        #[test]
        fn the_number_of_units_has_a_limit(accesses in prop::collection::vec((0u64..1 << 40, 1u32..4), 0..1500)) {
            let (mut refine, mut units) = (UnitRefinement::default(), Units::default());
            for _ in 0..4 {
                units = refine.learn(interval(&units, &accesses).rows());
                prop_assert!(units.divided.iter().all(|units| units.len() <= MOST && units.is_sorted()));
            }
            let again = UnitRefinement::default().learn(interval(&Units::default(), &accesses).rows());
            prop_assert_eq!(again, UnitRefinement::default().learn(interval(&Units::default(), &accesses).rows()));
        }
    }
}
