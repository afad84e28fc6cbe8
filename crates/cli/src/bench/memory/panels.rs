//! The figures of the paper: remote against local memory, and scaling within a node.

use super::case::Kernel;
use super::ratios::{Passes, Results};
use crate::bench::chart::{Panel, Series};

/// The figures for which there are measurements. `coherence`: pages come to who uses them, and first passes tell what
/// that takes.
pub fn panels(results: &Results, coherence: bool) -> Vec<Panel> {
    let panels = [remote_time(results, coherence), scaling(results), remote_bandwidth(results, coherence)];
    panels.into_iter().flatten().collect()
}

/// Kinds of passes, with their names where there are several.
fn phases(coherence: bool) -> &'static [(Passes, &'static str)] {
    if coherence {
        &[(Passes::First, "including coherence"), (Passes::Again, "after coherence")]
    } else {
        &[(Passes::Again, "remote memory")]
    }
}

/// Groups and series of a chart; nothing if no group has a value.
fn panel(title: &str, axis: &str, groups: &[(&str, Kernel)], series: Vec<Series>) -> Option<Panel> {
    let any = series.iter().any(|series| series.values.iter().any(Option::is_some));
    let groups = groups.iter().map(|(name, _)| (*name).to_owned()).collect();
    any.then(|| Panel { title: title.to_owned(), axis: axis.to_owned(), groups, series })
}

/// After Figure 5: one thread.
fn remote_time(results: &Results, coherence: bool) -> Option<Panel> {
    let groups = Kernel::ALL.map(|kernel| (kernel.test(1), kernel));
    let series = phases(coherence).iter().map(|&(passes, name)| {
        let value = |&(_, kernel): &(_, Kernel)| {
            results.spread(
                |case| case.kernel == kernel && case.threads == 1 && !case.is_local(),
                |case| results.times_local(case, passes),
            )
        };
        Series { name: name.to_owned(), values: groups.iter().map(value).collect() }
    });
    panel("Remote memory, one thread", "time, local = 1", &groups, series.collect())
}

/// The tests that have forms for several threads.
fn multi_threaded() -> [(&'static str, Kernel); 3] {
    [Kernel::Copy, Kernel::Read, Kernel::Write].map(|kernel| (kernel.test(2), kernel))
}

/// After Figure 6: local memory.
fn scaling(results: &Results) -> Option<Panel> {
    let groups = multi_threaded();
    let local = results.all.iter().map(|(case, _)| case).filter(|case| case.is_local() && case.threads > 1);
    let mut counts: Vec<usize> = local.map(|case| case.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let series = counts.into_iter().map(|threads| {
        let value = |&(_, kernel): &(_, Kernel)| {
            results.spread(
                |case| case.kernel == kernel && case.threads == threads && case.is_local(),
                |case| results.scaling(case),
            )
        };
        Series { name: format!("{threads} threads"), values: groups.iter().map(value).collect() }
    });
    panel("Local memory, several threads of a node", "bandwidth, one thread = 1", &groups, series.collect())
}

/// After Figure 7: all threads of a node.
fn remote_bandwidth(results: &Results, coherence: bool) -> Option<Panel> {
    let groups = multi_threaded();
    let series = phases(coherence).iter().map(|&(passes, name)| {
        let value = |&(_, kernel): &(_, Kernel)| {
            results.spread(
                |case| case.kernel == kernel && case.threads > 1 && !case.is_local(),
                |case| results.times_local(case, passes).map(f64::recip),
            )
        };
        Series { name: name.to_owned(), values: groups.iter().map(value).collect() }
    });
    panel("Remote memory, all threads of a node", "bandwidth, local = 1", &groups, series.collect())
}

#[cfg(test)]
mod tests {
    use super::super::ratios::tests::measured;
    use super::*;
    use crate::bench::chart::Spread;

    fn results(list: &[(Kernel, usize, u16, u16, u64, u64)]) -> Results {
        let mut results = Results::default();
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
