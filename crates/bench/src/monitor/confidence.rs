//! How far a median of few values can be trusted, whatever they are distributed like.

/// How often the interval has the true median, at least.
pub(super) const CONFIDENCE: f64 = 0.95;

/// So many deviations from the middle a normal distribution stays with [`CONFIDENCE`].
const DEVIATIONS: f64 = 1.96;

/// Values of which some say more than others.
#[derive(Debug)]
pub(super) struct Weighed {
    /// The lowest first, each with its weight.
    values: Vec<(f64, f64)>,
    weight: f64,
}

impl Weighed {
    /// Of values with their weights, which are positive.
    pub(super) fn new(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        Self { weight: values.iter().map(|&(_, weight)| weight).sum(), values }
    }

    /// What has half of the weight on each side. Nothing of nothing.
    pub(super) fn median(&self) -> Option<f64> {
        let (low, high) = self.between(self.weight / 2.0)?;
        Some(f64::midpoint(low, high))
    }

    /// The interval between two of the values that has the median of what they were drawn from with [`CONFIDENCE`]: each value
    /// is above that median as likely as below it, so that how much weight is above is a matter of throwing coins. No
    /// outlier, however far out, moves it further than to the next value. Nothing for fewer than six values, which cannot
    /// say so much.
    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        let squares: f64 = self.values.iter().map(|&(_, weight)| weight * weight).sum();
        // Coins fall in steps, of which the normal distribution knows nothing: half a step of caution.
        let step = self.weight / self.values.len() as f64;
        let outside = (self.weight - DEVIATIONS * squares.sqrt() - step) / 2.0;
        (outside > 0.0).then(|| self.between(outside))?
    }

    /// The values with which so much weight is reached from below and from above.
    fn between(&self, outside: f64) -> Option<(f64, f64)> {
        Some((reached(self.values.iter(), outside)?, reached(self.values.iter().rev(), outside)?))
    }
}

fn reached<'a>(mut values: impl Iterator<Item = &'a (f64, f64)>, weight: f64) -> Option<f64> {
    let mut sum = 0.0;
    values.find_map(|&(value, more)| {
        sum += more;
        (sum >= weight).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alike(values: impl IntoIterator<Item = f64>) -> Weighed {
        Weighed::new(values.into_iter().map(|value| (value, 1.0)))
    }

    fn first(count: u32) -> impl Iterator<Item = f64> {
        (1..=count).map(f64::from)
    }

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        // Tables of the binomial distribution: with 10 throws, at most one head falls in 1.07 % of all cases.
        let expected = [
            (5, None),
            (6, Some((1.0, 6.0))),
            (9, Some((2.0, 8.0))),
            (10, Some((2.0, 9.0))),
            (20, Some((6.0, 15.0))),
            (1000, Some((469.0, 532.0))),
        ];
        for (count, interval) in expected {
            assert_eq!(alike(first(count)).interval(), interval, "{count}");
        }
    }

    #[test]
    fn the_interval_misses_the_median_as_rarely_as_it_says() {
        for count in 6..300 {
            let (low, _) = alike(first(count)).interval().unwrap();
            // Of all ways in which the coins can fall, those with fewer heads than values up to the lower end.
            let (mut ways, mut below) = (0.5_f64.powi(count.cast_signed()), 0.0);
            for heads in (0..count).take_while(|&heads| f64::from(heads) < low) {
                below += ways;
                ways *= f64::from(count - heads) / f64::from(heads + 1);
            }
            assert!(2.0 * below <= 1.0 - CONFIDENCE, "{count} values: {below}");
        }
        // Every way in which the coins of sixteen values can fall, some of which weigh three times as much.
        let weights = |number: u32| if number.is_multiple_of(4) { 3.0 } else { 1.0 };
        let missed = (0..1_u32 << 16).filter(|signs| {
            let value = |number| if signs >> number & 1 == 1 { 1.0 } else { -1.0 };
            let (low, high) =
                Weighed::new((0..16).map(|number| (value(number), weights(number)))).interval().unwrap();
            low > 0.0 || high < 0.0
        });
        assert!((missed.count() as f64) < (1.0 - CONFIDENCE) * f64::from(1 << 16));
    }

    #[test]
    fn outliers_are_left_out() {
        let mut values: Vec<_> = first(10).collect();
        (values[9], values[0]) = (1e9, -1e9);
        assert_eq!(alike(values).interval(), Some((2.0, 9.0)));
    }

    #[test]
    fn what_weighs_more_says_more() {
        assert_eq!(Weighed::new([(1.0, 1.0), (2.0, 1.0), (3.0, 3.0)]).median(), Some(3.0));
        assert_eq!([alike([4.0, 1.0, 2.0]).median(), alike([2.0, 1.0]).median()], [Some(2.0), Some(1.5)]);
        assert_eq!(alike([]).median(), None);
    }

    proptest! {
        #[test]
        fn the_median_is_inside(values in prop::collection::vec((0.5f64..2.0, 0.5f64..2.0), 20..60)) {
            let weighed = Weighed::new(values);
            let ((low, high), median) = (weighed.interval().unwrap(), weighed.median().unwrap());
            prop_assert!(low <= median && median <= high);
        }
    }
}
