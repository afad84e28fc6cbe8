//! The figures of the paper: remote against local memory, and scaling within a node.

use super::case::{Kernel, MemoryCase};
use super::ratios::{MemoryResults, Passes};
use crate::chart::{Panel, Series};
use std::collections::BTreeSet;

/// The figures for which there are measurements. `coherence`: pages come to who uses them, and first passes tell what
/// that takes.
pub(super) fn panels(results: &MemoryResults, coherence: bool) -> Vec<Panel> {
    let panels = [remote_time(results, coherence), scaling(results), remote_bandwidth(results, coherence)];
    panels.into_iter().flatten().collect()
}

/// After Figure 5: remote memory, one thread.
fn remote_time(results: &MemoryResults, coherence: bool) -> Option<Panel> {
    let series = phases(coherence).iter().map(|&(passes, name)| {
        let case = |case: MemoryCase| case.threads == 1 && !case.is_local();
        series(results, &Kernel::ALL, name, case, |case| results.times_local(case, passes))
    });
    panel("Remote memory, one thread", "time, local = 1", &Kernel::ALL, 1, series.collect())
}

/// After Figure 6: local memory, several threads.
fn scaling(results: &MemoryResults) -> Option<Panel> {
    let local = results.all.iter().map(|(case, _)| case).filter(|case| case.is_local() && case.threads > 1);
    let counts: BTreeSet<usize> = local.map(|case| case.threads).collect();
    let series = counts.into_iter().map(|threads| {
        let case = |case: MemoryCase| case.threads == threads && case.is_local();
        series(results, &BANDWIDTHS, &format!("{threads} threads"), case, |case| results.scaling(case))
    });
    let title = "Local memory, several threads of a node";
    panel(title, "bandwidth, one thread = 1", &BANDWIDTHS, 2, series.collect())
}

/// After Figure 7: remote memory, all threads of a node.
fn remote_bandwidth(results: &MemoryResults, coherence: bool) -> Option<Panel> {
    let series = phases(coherence).iter().map(|&(passes, name)| {
        let case = |case: MemoryCase| case.threads > 1 && !case.is_local();
        series(results, &BANDWIDTHS, name, case, |case| results.times_local(case, passes).map(f64::recip))
    });
    let title = "Remote memory, all threads of a node";
    panel(title, "bandwidth, local = 1", &BANDWIDTHS, 2, series.collect())
}

/// The kernels that have forms for several threads.
const BANDWIDTHS: [Kernel; 3] = [Kernel::Copy, Kernel::Read, Kernel::Write];

/// Kinds of passes, with names that tell them apart.
fn phases(coherence: bool) -> &'static [(Passes, &'static str)] {
    if coherence {
        &[(Passes::First, "including coherence"), (Passes::Again, "after coherence")]
    } else {
        &[(Passes::Again, "remote memory")]
    }
}

/// A ratio of some of the cases, for each kernel.
fn series(
    results: &MemoryResults,
    kernels: &[Kernel],
    name: &str,
    wanted: impl Fn(MemoryCase) -> bool,
    ratio: impl Fn(MemoryCase) -> Option<f64>,
) -> Series {
    let of = |kernel: Kernel| results.spread(|case| case.kernel == kernel && wanted(case), &ratio);
    Series { name: name.to_owned(), values: kernels.iter().copied().map(of).collect() }
}

/// A chart of so many threads; nothing if it has no value.
fn panel(title: &str, axis: &str, kernels: &[Kernel], threads: usize, series: Vec<Series>) -> Option<Panel> {
    let any = series.iter().any(|series| series.values.iter().any(Option::is_some));
    let groups = kernels.iter().map(|kernel| kernel.test(threads).to_owned()).collect();
    any.then(|| Panel { title: title.to_owned(), axis: axis.to_owned(), groups, series })
}

#[cfg(test)]
mod tests {
    use super::super::ratios::tests::measured;
    use super::*;
    use crate::chart::Spread;

    fn results(list: &[(Kernel, usize, u16, u16, u64, u64)]) -> MemoryResults {
        let mut results = MemoryResults::default();
        for &(kernel, threads, node, memory, first, again) in list {
            let (case, measured) = measured(kernel, threads, node, memory, first, again);
            results.add(case, Ok(measured));
        }
        results
    }

    #[test]
    fn one_node_with_one_processor_has_nothing_to_compare() {
        assert_eq!(panels(&results(&[(Kernel::Read, 1, 0, 0, 9, 9)]), false), []);
    }

    #[test]
    fn each_figure_has_its_cases_only() {
        let results = results(&[
            (Kernel::Read, 1, 0, 0, 100, 100),
            (Kernel::Read, 1, 0, 1, 900, 200),
            (Kernel::Read, 1, 0, 2, 900, 300),
            (Kernel::Read, 2, 0, 0, 50, 50),
            (Kernel::Read, 4, 0, 0, 50, 40),
            (Kernel::Read, 4, 0, 1, 900, 80),
        ]);
        let panels = panels(&results, false);
        let values = |panel: usize| -> Vec<(&str, Option<Spread>)> {
            panels[panel].series.iter().map(|series| (series.name.as_str(), series.values[1])).collect()
        };
        let same = |value| Some(Spread { min: value, median: value, max: value });
        assert_eq!(values(0), [("remote memory", Some(Spread { min: 2.0, median: 2.5, max: 3.0 }))]);
        assert_eq!(values(1), [("2 threads", same(2.0)), ("4 threads", same(2.5))]);
        assert_eq!(values(2), [("remote memory", same(0.5))]);
        assert!(panels.iter().all(|panel| panel.series.iter().all(|series| series.values[0].is_none())));
    }

    #[test]
    fn coherence_is_a_series_of_its_own() {
        let list = [(Kernel::Copy, 1, 1, 1, 100, 100), (Kernel::Copy, 1, 1, 0, 4_000, 100)];
        let panels = panels(&results(&list), true);
        let medians: Vec<f64> =
            panels[0].series.iter().map(|series| series.values[0].unwrap().median).collect();
        assert_eq!((panels.len(), medians), (1, vec![40.0, 1.0]));
    }
}
