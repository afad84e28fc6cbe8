//! What the runs say about the cost of the monitor.

use super::cost::Cost;
use super::measure::{Pair, Recorded};
use crate::bench::chart::Spread;

/// The monitor may take so much of the time of a run.
pub const TARGET: f64 = 0.01;

/// That fewer pairs than these are all slower with the monitor happens by chance too often: with five, once in 32 times.
const FEWEST: usize = 5;

/// What came of a case.
#[derive(Clone, Debug)]
pub struct Overhead {
    /// How many pairs of runs there were.
    pairs: usize,
    /// Nanoseconds without the monitor.
    pub without: Spread,
    /// Nanoseconds with it.
    pub with: Spread,
    /// Time with the monitor : without, pair by pair.
    pub ratio: Spread,
    /// Least time with the monitor : least time without it.
    pub least: f64,
    /// The same as `ratio` for the time of processors.
    pub processors: Spread,
    /// By how much two runs without the monitor usually differ, as a part of their time; nothing for a single one.
    pub noise: Option<f64>,
    /// What the node with the most transactions spent on noting and writing them, as a part of the run's time without the
    /// monitor. Only for workloads.
    pub counted: Option<f64>,
    /// What the last recording holds.
    pub recorded: Recorded,
}

/// Whether the target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By what was measured.
    Met,
    /// There were few runs, or they differ no more than they do without the monitor.
    Unclear,
    /// Every run took longer with the monitor, and by more than noise.
    Missed,
}

impl Overhead {
    /// Nothing if there are no pairs.
    pub fn new(pairs: &[Pair], recorded: Recorded, cost: Cost, workload: bool) -> Option<Self> {
        let spread = |value: &dyn Fn(&Pair) -> f64| Spread::of(pairs.iter().map(value).collect());
        let without = spread(&|pair| pair.without.time as f64)?;
        let with = spread(&|pair| pair.with.time as f64)?;
        let neighbours = pairs.windows(2).map(|two| {
            let [first, second] = [0, 1].map(|which: usize| two[which].without.time.max(1) as f64);
            (second / first).max(first / second) - 1.0
        });
        let spent = recorded.nodes.values().map(|&(transactions, rows)| cost.of(transactions, rows));
        let counted = workload.then(|| spent.fold(0.0, f64::max) / without.median);
        Some(Self {
            pairs: pairs.len(),
            ratio: spread(&|pair| pair.with.time as f64 / pair.without.time.max(1) as f64)?,
            least: with.min / without.min,
            processors: spread(&|pair| pair.with.processors as f64 / pair.without.processors.max(1) as f64)?,
            noise: Spread::of(neighbours.collect()).map(|noise| noise.median),
            counted,
            without,
            with,
            recorded,
        })
    }

    /// How the case stands to the target.
    pub fn verdict(&self) -> Verdict {
        let excess = self.ratio.median - 1.0;
        let always = self.pairs >= FEWEST && self.ratio.min > 1.0 + TARGET;
        match self.noise {
            _ if excess <= TARGET => Verdict::Met,
            Some(noise) if always && excess > TARGET + noise => Verdict::Missed,
            _ => Verdict::Unclear,
        }
    }

    /// Transactions and rows of all nodes.
    pub fn totals(&self) -> (u64, u64) {
        self.recorded.nodes.values().fold((0, 0), |sum, node| (sum.0 + node.0, sum.1 + node.1))
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::measure::Run;
    use super::*;

    /// A case whose runs without and with the monitor took such times.
    pub fn overhead(times: &[(u64, u64)]) -> Overhead {
        let run = |time| Run { time, processors: 2 * time };
        let pairs: Vec<_> =
            times.iter().map(|&(without, with)| Pair { without: run(without), with: run(with) }).collect();
        let recorded = Recorded { nodes: [(0, (1_000, 100)), (1, (3_000, 10))].into(), bytes: 2_000 };
        let cost = Cost { new: 100.0, again: 10.0, row: 100.0, filters: 20.0 };
        Overhead::new(&pairs, recorded, cost, true).unwrap()
    }

    #[test]
    fn ratios_are_those_of_pairs() {
        let overhead = overhead(&[(1_000_000, 1_010_000), (2_000_000, 2_100_000), (1_500_000, 1_500_000)]);
        assert_eq!(overhead.ratio, Spread { min: 1.0, median: 1.01, max: 1.05 });
        assert_eq!((overhead.least, overhead.processors.median), (1.01, 1.01));
        // Neighbours differ by 2 and by 4 / 3.
        assert!((overhead.noise.unwrap() - (1.0 + 1.0 / 3.0) / 2.0).abs() < 1e-9);
        assert_eq!(overhead.totals(), (4_000, 110));
        // Node 1 spent 2990 * 10 + 10 * 200, more than node 0 with 900 * 10 + 100 * 200.
        assert!((overhead.counted.unwrap() - 31_900.0 / 1_500_000.0).abs() < 1e-9);
    }

    #[test]
    fn only_what_is_more_than_noise_misses_the_target() {
        let runs = |without: &[u64], with| {
            overhead(&without.iter().map(|&without| (without, with)).collect::<Vec<_>>()).verdict()
        };
        let quiet = |with| runs(&[1_000_000, 1_001_000, 1_000_000, 1_001_000, 1_000_000], with);
        assert_eq!([quiet(1_009_000), quiet(1_030_000)], [Verdict::Met, Verdict::Missed]);
        let loud = |with| runs(&[1_000_000, 1_200_000, 1_000_000, 1_200_000, 1_000_000], with);
        let expected = [Verdict::Met, Verdict::Unclear, Verdict::Unclear, Verdict::Missed];
        assert_eq!([1_005_000, 1_150_000, 1_205_000, 1_300_000].map(loud), expected);
        assert_eq!(runs(&[1_000_000; 4], 5_000_000), Verdict::Unclear);
        assert_eq!(runs(&[1_000_000], 5_000_000), Verdict::Unclear);
    }
}
