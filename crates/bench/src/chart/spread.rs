//! Several values in short: the least, the median, the greatest.

use super::scale::digits;
use serde::Serialize;

/// Several values in short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// The least one.
    pub min: f64,
    /// The one in the middle, or between the two in the middle.
    pub median: f64,
    /// The greatest one.
    pub max: f64,
}

impl Spread {
    /// Nothing if there are none.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { min, median, max })
    }
}

/// The median, and from where to where the values go if they differ in what is shown.
impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [min, median, max] = [self.min, self.median, self.max].map(digits);
        if min == max { f.pad(&median) } else { f.pad(&format!("{median} ({min} to {max})")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_value_in_the_middle() {
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0]).unwrap().to_string(), "2 (1 to 4)");
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(vec![1.5]).unwrap().to_string(), "1.5");
        assert_eq!(Spread::of(vec![]), None);
    }
}
