//! The vertical axis of a chart.

/// Where values are between the bottom and the top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// From 0 to so much, with a line at each multiple of the step.
    Linear {
        /// The top, a multiple of the step.
        top: f64,
        /// From line to line.
        step: f64,
    },
    /// Between powers of 10: a bar that begins at 1 shows how many times more or less its value is.
    Logarithmic {
        /// The exponent at the bottom.
        bottom: i32,
        /// The exponent at the top.
        top: i32,
    },
}

/// Values that differ more than this would make the small ones vanish on a linear axis.
const WIDE: f64 = 10.0;

/// About so many lines are drawn.
const LINES: f64 = 5.0;

impl Scale {
    /// An axis with room for positive values and for 1.
    pub(super) fn new(values: impl Iterator<Item = f64>) -> Self {
        let (min, max) =
            values.fold((1.0_f64, 1.0_f64), |(min, max), value| (min.min(value), max.max(value)));
        if max > WIDE * min {
            // Numbers at the ends of bars need room too.
            let bottom = if min < 1.0 { min.log10() - 0.2 } else { 0.0 };
            return Self::Logarithmic {
                bottom: exponent(bottom.floor()),
                top: exponent((max.log10() + 0.1).ceil()),
            };
        }
        let rough = max / LINES;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * unit);
        Self::Linear { top: (max / step + 0.5).ceil() * step, step }
    }

    /// Where a value is: 0 at the bottom, 1 at the top.
    pub(super) fn position(&self, value: f64) -> f64 {
        match *self {
            Self::Linear { top, .. } => value / top,
            Self::Logarithmic { bottom, top } => {
                (value.log10() - f64::from(bottom)) / f64::from(top - bottom)
            }
        }
    }

    /// Where bars begin.
    pub(super) fn base(&self) -> f64 {
        match self {
            Self::Linear { .. } => 0.0,
            Self::Logarithmic { .. } => 1.0,
        }
    }

    /// The values at which there is a line, with 1 among them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::Linear { top, step } => {
                let mut ticks: Vec<f64> = (0..)
                    .map(|number| f64::from(number) * step)
                    .take_while(|tick| *tick <= top * 1.001)
                    .collect();
                if !ticks.contains(&1.0) {
                    ticks.push(1.0);
                }
                ticks
            }
            Self::Logarithmic { bottom, top } => {
                (bottom..=top).map(|exponent| 10_f64.powi(exponent)).collect()
            }
        }
    }
}

/// A whole number, such as the logarithm of another number is when it is rounded.
#[expect(
    clippy::cast_possible_truncation,
    reason = "floats have no other conversion, and logarithms are small"
)]
fn exponent(whole: f64) -> i32 {
    whole as i32
}

/// A positive number or 0, with three digits except for those that say nothing.
pub(crate) fn digits(value: f64) -> String {
    let before_point = if value > 0.0 { exponent(value.log10().floor()) + 1 } else { 1 };
    let decimals = usize::try_from(3 - before_point).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_0_and_has_room_above_the_values() {
        let scale = Scale::new([2.0, 3.5].into_iter());
        assert_eq!(scale, Scale::Linear { top: 4.0, step: 1.0 });
        assert_eq!(scale.ticks(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!((scale.position(scale.base()), scale.position(4.0)), (0.0, 1.0));
    }

    #[test]
    fn one_is_always_on_the_axis() {
        for values in [vec![], vec![0.3, 0.9], vec![4.0, 9.0], vec![40.0, 90.0], vec![0.001]] {
            let scale = Scale::new(values.iter().copied());
            assert!(scale.ticks().contains(&1.0), "{values:?}");
            let inside = |value: &f64| (0.0..=1.0).contains(&scale.position(*value));
            assert!(scale.ticks().iter().chain(&values).all(inside), "{values:?} {scale:?}");
        }
    }

    #[test]
    fn values_far_apart_are_on_powers_of_10() {
        let scale = Scale::new([0.02, 350.0].into_iter());
        assert_eq!(scale, Scale::Logarithmic { bottom: -2, top: 3 });
        assert_eq!(scale.ticks(), [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(scale.position(scale.base()), 0.4);
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.0, 0.00412, 0.1, 1.0, 2.499, 9.999, 12.34, 123.4, 12_345.6].map(digits);
        assert_eq!(texts, ["0", "0.00412", "0.1", "1", "2.5", "10", "12.3", "123", "12346"]);
    }
}
