//! The heat of units of memory: recent transactions, weighted by age.

use std::collections::BTreeMap;

/// The weight of one transaction. It is halved after each interval.
const WEIGHT: u64 = 64;

/// The share of all heat, in per cent, that the units to be divided have together.
const SHARE: u64 = 90;

/// The heat of units of one size, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heat(BTreeMap<u64, u64>);

impl Heat {
    /// Ends an interval: halves all weights.
    pub(crate) fn cool(&mut self) {
        self.0.retain(|_, weight| {
            *weight /= 2;
            *weight > 0
        });
    }

    /// Adds `count` transactions about a unit.
    pub(crate) fn add(&mut self, unit: u64, count: u64) {
        let weight = self.0.entry(unit).or_default();
        *weight = weight.saturating_add(count.saturating_mul(WEIGHT));
    }

    /// The hottest units that together have [`SHARE`] of the heat, the hottest first, at most `most` of them.
    /// `favour` gives the factor by which the heat of a unit counts.
    pub(crate) fn hottest(&self, most: usize, favour: impl Fn(u64) -> u64) -> Vec<u64> {
        let all = self.0.values().fold(0, |sum: u64, &weight| sum.saturating_add(weight));
        // Rounded up, so that two equally hot units are both divided, however few transactions there are.
        let enough = all - all / 100 * (100 - SHARE);
        let mut units: Vec<(u64, u64)> = self.0.iter().map(|(&unit, &weight)| (unit, weight)).collect();
        units.sort_by_key(|&(unit, weight)| (std::cmp::Reverse(weight.saturating_mul(favour(unit))), unit));
        let mut sum = 0_u64;
        let hot = units.into_iter().take(most).take_while(|&(_, weight)| {
            let before = sum;
            sum = sum.saturating_add(weight);
            before <= enough
        });
        hot.map(|(unit, _)| unit).collect()
    }
}
