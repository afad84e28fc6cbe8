//! Apportioning whole numbers so that the shares add up to what was shared (the method of largest remainders).

use gondwana_page::to_usize;

/// Apportions a number in proportion to weights by the method of largest remainders. The shares are whole and their sum
/// is the number. Weights that are all 0 count as equal.
///
/// # Panics
/// If there are no weights.
pub(crate) fn apportion(number: u64, weights: &[u64]) -> Vec<u64> {
    if weights.len() == 1 || number == 0 {
        let mut shares = vec![0; weights.len()];
        shares[0] = number;
        return shares;
    }
    let equal = weights.iter().all(|&weight| weight == 0);
    let weight = |index: usize| if equal { 1 } else { u128::from(weights[index]) };
    let sum: u128 = (0..weights.len()).map(weight).sum();
    let mut left = number;
    let mut owed: Vec<(u128, usize)> = vec![];
    let mut shares: Vec<u64> = vec![];
    for index in 0..weights.len() {
        let product = u128::from(number) * weight(index);
        let share = u64::try_from(product / sum).expect("at most the number");
        left -= share;
        shares.push(share);
        owed.push((product % sum, index));
    }
    owed.sort_unstable_by_key(|&(rest, index)| {
        (std::cmp::Reverse(rest), std::cmp::Reverse(weight(index)), index)
    });
    // The rest is less than one for each.
    owed.iter().take(to_usize(left)).for_each(|&(_, index)| shares[index] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_single_one_goes_to_the_heaviest() {
        assert_eq!(apportion(1, &[100, 200, 50]), [0, 1, 0]);
        assert_eq!(apportion(7, &[1, 1]), [4, 3]);
        assert_eq!(apportion(2, &[0, 0]), [1, 1]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(number: u64, weights in prop::collection::vec(any::<u64>(), 1..9)) {
            let shares = apportion(number, &weights);
            prop_assert_eq!(shares.iter().map(|&share| u128::from(share)).sum::<u128>(), u128::from(number));
            let none = weights.iter().any(|&weight| weight > 0);
            prop_assert!(!none || shares.iter().zip(&weights).all(|(&share, &weight)| weight > 0 || share == 0));
        }
    }
}
