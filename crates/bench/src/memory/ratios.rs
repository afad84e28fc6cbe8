//! What the measurements mean: speeds, remote memory against local, many threads against one.

use super::case::MemoryCase;
use super::measure::MeasuredMemory;
use crate::chart::Spread;
use std::collections::HashMap;

/// Which passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Passes {
    /// The first, which brings pages to the node that works on them, with the release after it.
    First,
    /// Those after it.
    Again,
}

/// What was measured, or why it was not, in the order of the cases.
#[derive(Debug, Default)]
pub(super) struct MemoryResults {
    /// Each case with what came of it.
    pub all: Vec<(MemoryCase, Result<MeasuredMemory, String>)>,
    measured: HashMap<MemoryCase, MeasuredMemory>,
}

impl MemoryResults {
    /// Notes what came of a case.
    pub(super) fn add(&mut self, case: MemoryCase, outcome: Result<MeasuredMemory, String>) {
        if let Ok(measured) = &outcome {
            self.measured.insert(case, measured.clone());
        }
        self.all.push((case, outcome));
    }

    /// Work in a nanosecond: bytes, which are as many GB/s, or lines.
    pub(super) fn speed(&self, case: MemoryCase, passes: Passes) -> Option<f64> {
        let measured = self.measured.get(&case)?;
        let nanoseconds = match passes {
            Passes::First => measured.first,
            // What else the computer does only adds to a time.
            Passes::Again => measured.again.min,
        };
        Some(measured.work as f64 / nanoseconds.max(1) as f64)
    }

    /// Remote:local, how many times as long the same takes as with local memory that is at hand. Nothing for just that.
    pub(super) fn times_local(&self, case: MemoryCase, passes: Passes) -> Option<f64> {
        if case.is_local() && passes == Passes::Again {
            return None;
        }
        Some(self.speed(case.local(), Passes::Again)? / self.speed(case, passes)?)
    }

    /// How many times as fast as one thread several are. Nothing for one thread.
    pub(super) fn scaling(&self, case: MemoryCase) -> Option<f64> {
        let several = case != case.single();
        several.then(|| Some(self.speed(case, Passes::Again)? / self.speed(case.single(), Passes::Again)?))?
    }

    /// A ratio over some of the cases, in short; nothing if none of them has it.
    pub(super) fn spread(
        &self,
        of: impl Fn(MemoryCase) -> bool,
        ratio: impl Fn(MemoryCase) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of(
            self.all.iter().filter(|(case, _)| of(*case)).filter_map(|(case, _)| ratio(*case)).collect(),
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::case::Kernel;
    use super::*;
    use crate::samples::Summary;
    use gondwana_topology::NodeId;

    /// A case and what came of it: nanoseconds of the first pass and of those after it, for a megabyte.
    pub(crate) fn measured(
        kernel: Kernel,
        threads: usize,
        node: u16,
        memory: u16,
        first: u64,
        again: u64,
    ) -> (MemoryCase, MeasuredMemory) {
        let again = Summary { min: again, median: 2 * again, p90: 3 * again, samples: 9 };
        let case = MemoryCase { kernel, threads, node: NodeId(node), memory: NodeId(memory) };
        (case, MeasuredMemory { work: 1_000_000, pages: 245, first, again, places: None })
    }

    fn results() -> (MemoryResults, [MemoryCase; 4]) {
        let measured = [
            measured(Kernel::Read, 1, 0, 0, 120_000, 100_000),
            measured(Kernel::Read, 1, 0, 1, 900_000, 250_000),
            measured(Kernel::Read, 4, 0, 0, 60_000, 40_000),
            measured(Kernel::Read, 4, 0, 1, 900_000, 80_000),
        ];
        let mut results = MemoryResults::default();
        measured.iter().for_each(|(case, measured)| results.add(*case, Ok(measured.clone())));
        (results, measured.map(|(case, _)| case))
    }

    #[test]
    fn speeds_and_ratios_are_those_of_the_fastest_passes() {
        let (results, [local, remote, many, many_remote]) = results();
        assert_eq!(results.speed(local, Passes::Again), Some(10.0));
        assert_eq!(results.speed(local, Passes::First), Some(1e6 / 120e3));
        assert_eq!(results.times_local(remote, Passes::Again), Some(2.5));
        assert_eq!(results.times_local(remote, Passes::First), Some(9.0));
        assert_eq!(results.times_local(local, Passes::First), Some(1.2));
        assert_eq!(results.times_local(local, Passes::Again), None);
        assert_eq!(results.times_local(many_remote, Passes::Again), Some(2.0));
        assert_eq!(results.scaling(many), Some(2.5));
        assert_eq!(results.scaling(local), None);
    }

    #[test]
    fn what_was_not_measured_has_no_ratio() {
        let (mut results, [_, remote, ..]) = results();
        let (elsewhere, _) = measured(Kernel::Read, 1, 1, 0, 0, 0);
        results.add(elsewhere, Err("refused".to_owned()));
        assert_eq!(results.speed(elsewhere, Passes::Again), None);
        // Its local memory was not measured either.
        assert_eq!(results.times_local(MemoryCase { node: NodeId(2), ..remote }, Passes::Again), None);
        let ratio = |case| results.times_local(case, Passes::Again);
        let single = results.spread(|case| case.threads == 1, ratio);
        assert_eq!(single, Some(Spread { min: 2.5, median: 2.5, max: 2.5 }));
        assert_eq!(results.spread(|case| case.threads == 3, ratio), None);
    }
}
