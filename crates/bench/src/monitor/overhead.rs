//! What the runs say about the cost of the monitor.

use super::confidence::Weighed;
use super::cost::Cost;
use super::measure::{Noted, Pair, RecordedRun};
use crate::chart::Spread;

/// The monitor may take so much of the time of a run.
pub(super) const TARGET: f64 = 0.01;

/// Runs that seem to differ by less than this have met by chance.
const LEAST_NOISE: f64 = 0.001;

/// What came of a case.
#[derive(Clone, Debug)]
pub(super) struct Overhead {
    /// Nanoseconds without the monitor.
    pub without: Spread,
    /// Nanoseconds with it.
    pub with: Spread,
    /// All that was measured.
    pub pairs: Vec<Pair>,
    /// What they say.
    pub estimate: Estimate,
    /// Least time with the monitor : least time without it.
    pub least: f64,
    /// Time of processors with the monitor : without, pair by pair.
    pub processors: Spread,
    /// By how much two runs without the monitor usually differ, as a part of their time; nothing for a single one.
    pub noise: Option<f64>,
    /// What the node with the most transactions spent on noting and writing them, as a part of the run's time without the
    /// monitor. Only for workloads.
    pub counted: Option<f64>,
    /// What the last recording holds.
    pub recorded: RecordedRun,
}

/// Whether the target is met, by what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The interval of confidence is below it.
    Met,
    /// There were too few pairs, or they differ too much, to say.
    Unclear,
    /// The interval of confidence is above it.
    Missed,
}

/// What pairs of runs say about how much longer a run takes with the monitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// Time with the monitor : without, pair by pair.
    pub ratio: Spread,
    /// Where the median of such ratios is, were there ever so many pairs; see [`Weighed::interval`].
    pub confidence: Option<(f64, f64)>,
}

impl Estimate {
    /// What the pairs of a workload say.
    fn of(pairs: &[Pair]) -> Option<Self> {
        Self::weighed(pairs.iter().map(|pair| (pair.ratio(), 1.0)))
    }

    /// What all workloads together say: their pairs as if they were of one, in which a pair weighs the less the more runs of
    /// its workload differ anyway. Nothing if there are fewer than two.
    pub(super) fn of_all(workloads: &[&Overhead]) -> Option<Self> {
        let ratios = workloads.iter().flat_map(|overhead| {
            let weight = 1.0 / overhead.noise.unwrap_or(1.0).max(LEAST_NOISE);
            overhead.pairs.iter().map(move |pair| (pair.ratio(), weight))
        });
        Self::weighed(ratios).filter(|_| workloads.len() > 1)
    }

    /// Nothing if there are none.
    fn weighed(ratios: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let weighed = Weighed::new(ratios.clone());
        let spread = Spread::of(ratios.map(|(ratio, _)| ratio).collect())?;
        Some(Self { ratio: Spread { median: weighed.median()?, ..spread }, confidence: weighed.interval() })
    }

    /// How this stands to the target.
    pub(super) fn verdict(&self) -> Verdict {
        match self.confidence {
            Some((_, high)) if high <= 1.0 + TARGET => Verdict::Met,
            Some((low, _)) if low > 1.0 + TARGET => Verdict::Missed,
            _ => Verdict::Unclear,
        }
    }
}

impl Overhead {
    /// Nothing if there are no pairs.
    pub(super) fn new(pairs: Vec<Pair>, recorded: RecordedRun, cost: Cost, workload: bool) -> Option<Self> {
        let spread = |value: &dyn Fn(&Pair) -> f64| Spread::of(pairs.iter().map(value).collect());
        let without = spread(&|pair| pair.without.time as f64)?;
        let with = spread(&|pair| pair.with.time as f64)?;
        let neighbours = pairs.windows(2).map(|two| {
            let [first, second] = [0, 1].map(|which: usize| two[which].without.time.max(1) as f64);
            (second / first).max(first / second) - 1.0
        });
        let spent = recorded.nodes.values().map(|noted| cost.of(noted.times, noted.rows));
        let counted = workload.then(|| spent.fold(0.0, f64::max) / without.median);
        Some(Self {
            estimate: Estimate::of(&pairs)?,
            least: with.min / without.min,
            processors: spread(&|pair| pair.with.processors as f64 / pair.without.processors.max(1) as f64)?,
            noise: Spread::of(neighbours.collect()).map(|noise| noise.median),
            counted,
            without,
            with,
            recorded,
            pairs,
        })
    }

    /// What all nodes have noted.
    pub(super) fn totals(&self) -> Noted {
        self.recorded.nodes.values().fold(Noted::default(), |sum, node| Noted {
            transactions: sum.transactions + node.transactions,
            times: sum.times + node.times,
            rows: sum.rows + node.rows,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::measure::TimedRun;
    use super::*;

    /// A case whose runs without and with the monitor took such times.
    pub(crate) fn overhead(times: &[(u64, u64)]) -> Overhead {
        let run = |time| TimedRun { time, processors: 2 * time };
        let pairs: Vec<_> =
            times.iter().map(|&(without, with)| Pair { without: run(without), with: run(with) }).collect();
        let noted = |transactions, times, rows| Noted { transactions, times, rows };
        let nodes = [(0, noted(1_000, 1_000, 100)), (1, noted(8_000, 3_000, 10))].into();
        let recorded = RecordedRun { nodes, bytes: 2_000 };
        let cost = Cost { new: 100.0, again: 10.0, row: 100.0, filters: 20.0 };
        Overhead::new(pairs, recorded, cost, true).unwrap()
    }

    #[test]
    fn ratios_are_those_of_pairs() {
        let overhead = overhead(&[(1_000_000, 1_010_000), (2_000_000, 2_100_000), (1_500_000, 1_500_000)]);
        assert_eq!(overhead.estimate.ratio, Spread { min: 1.0, median: 1.01, max: 1.05 });
        assert_eq!((overhead.least, overhead.processors.median), (1.01, 1.01));
        // Neighbours differ by 2 and by 4 / 3.
        assert!((overhead.noise.unwrap() - (1.0 + 1.0 / 3.0) / 2.0).abs() < 1e-9);
        assert_eq!(overhead.totals(), Noted { transactions: 9_000, times: 4_000, rows: 110 });
        // Node 1 spent 2990 * 10 + 10 * 200, more than node 0 with 900 * 10 + 100 * 200.
        assert!((overhead.counted.unwrap() - 31_900.0 / 1_500_000.0).abs() < 1e-9);
    }

    #[test]
    fn the_target_is_met_or_missed_where_the_pairs_agree() {
        let verdict = |with: &[u64]| {
            overhead(&with.iter().map(|&with| (1_000_000, with)).collect::<Vec<_>>()).estimate.verdict()
        };
        // Ten pairs, of which one may say anything on each side.
        let pairs = |low, high| {
            let mut with = vec![low; 5];
            with.extend([high; 3]);
            with.extend([500_000, 9_000_000]);
            verdict(&with)
        };
        assert_eq!(pairs(1_001_000, 1_009_000), Verdict::Met);
        assert_eq!(pairs(1_001_000, 1_020_000), Verdict::Unclear);
        assert_eq!(pairs(1_020_000, 1_030_000), Verdict::Missed);
        assert_eq!([verdict(&[1_000_000; 5]), verdict(&[1_000_000; 6])], [Verdict::Unclear, Verdict::Met]);
    }

    #[test]
    fn together_quiet_workloads_say_more_than_noisy_ones() {
        let pairs = |times: [u64; 2], ratio: u64| {
            let all: Vec<_> =
                (0..8).map(|number| times[number % 2]).map(|time| (time, time * ratio / 100)).collect();
            overhead(&all)
        };
        let (quiet, noisy) = (pairs([1_000_000, 1_010_000], 100), pairs([1_000_000, 2_000_000], 110));
        let together = Estimate::of_all(&[&noisy, &quiet]).unwrap();
        assert_eq!((together.ratio.median, together.ratio.max, together.verdict()), (1.0, 1.1, Verdict::Met));
        assert!(Estimate::of_all(&[&quiet]).is_none());
    }
}
