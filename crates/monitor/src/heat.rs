//! Where most has happened of late.

use std::collections::BTreeMap;

/// What one transaction weighs. The weight is halved with each interval.
const WEIGHT: u64 = 64;

/// Of all that happens in units of one size, this many hundredths are to be in those that are looked at more closely.
const SHARE: u64 = 90;

/// What has happened in units of memory of one size, by their numbers; the longer ago, the less it weighs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heat(BTreeMap<u64, u64>);

impl Heat {
    /// An interval is over.
    pub fn cool(&mut self) {
        self.0.retain(|_, weight| {
            *weight /= 2;
            *weight > 0
        });
    }

    /// So many transactions were about a unit.
    pub fn add(&mut self, unit: u64, count: u64) {
        let weight = self.0.entry(unit).or_default();
        *weight = weight.saturating_add(count.saturating_mul(WEIGHT));
    }

    /// The hottest units that together have most of the heat, the hottest first, but no more than `most`. The heat of a unit
    /// counts as often as `favour` says.
    pub fn hottest(&self, most: usize, favour: impl Fn(u64) -> u64) -> Vec<u64> {
        let all = self.0.values().fold(0, |sum: u64, &weight| sum.saturating_add(weight));
        // Rounded up, so that two units that are equally hot are both looked at, however little happens.
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
