//! How far a median of few values can be trusted, whatever they are distributed like.

/// How often the interval has the true median, at least.
pub const CONFIDENCE: f64 = 0.95;

/// The interval between two of the values that has the median of what they were drawn from with [`CONFIDENCE`]: each value
/// is above that median as likely as below it, so that how many are is a matter of throwing coins. No outlier, however far
/// out, moves it further than to the next value. Nothing for fewer than six values, which cannot say so much.
pub fn of_median(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    // Of all ways in which the coins can fall, those with fewer than so many heads.
    let (mut ways, mut below) = (0.5_f64.powi(i32::try_from(count).ok()?), 0.0);
    let mut left_out = 0;
    for heads in 0..count / 2 {
        below += ways;
        if 2.0 * below > 1.0 - CONFIDENCE {
            break;
        }
        left_out = heads + 1;
        ways *= (count - heads) as f64 / (heads + 1) as f64;
    }
    (left_out > 0).then(|| (values[left_out - 1], values[count - left_out]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(count: u32) -> Vec<f64> {
        (1..=count).map(f64::from).collect()
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
        ];
        for (count, interval) in expected {
            assert_eq!(of_median(first(count)), interval, "{count}");
        }
        // So many that no single way has a likelihood that can be told from none.
        assert_eq!(of_median(first(1000)), Some((469.0, 532.0)));
    }

    #[test]
    fn outliers_are_left_out() {
        let mut values = first(10);
        (values[9], values[0]) = (1e9, -1e9);
        assert_eq!(of_median(values), Some((2.0, 9.0)));
    }

    proptest! {
        #[test]
        fn the_median_is_inside(values in prop::collection::vec(0.5f64..2.0, 6..60)) {
            let (low, high) = of_median(values.clone()).unwrap();
            let mut sorted = values;
            sorted.sort_unstable_by(f64::total_cmp);
            prop_assert!(low <= sorted[(sorted.len() - 1) / 2] && sorted[sorted.len() / 2] <= high);
        }
    }
}
