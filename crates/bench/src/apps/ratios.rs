//! Many ratios in one.

/// The number by which all of them could be replaced without changing their product; nothing if there are none.
pub(super) fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    let count = logarithms.len();
    (count > 0).then(|| (logarithms.iter().sum::<f64>() / count as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_and_half_are_once() {
        assert!((geometric_mean([2.0, 0.5].into_iter()).unwrap() - 1.0).abs() < 1e-12);
        assert!((geometric_mean([8.0, 1.0, 1.0].into_iter()).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(geometric_mean(std::iter::empty()), None);
    }
}
