//! The measurements as a table and as JSON.

use super::case::{Kernel, MemoryCase};
use super::measure::MeasuredMemory;
use super::ratios::{MemoryResults, Passes};
use super::setup::MemorySetup;
use crate::chart::{Panel, digits};
use gondwana_console::columns::{Side, columns};
use serde_json::{Value, json};

/// A line for each case, the figures in numbers, and what was not measured.
pub(super) fn table(setup: &MemorySetup, results: &MemoryResults, panels: &[Panel]) -> String {
    let mut text = format!("{}\n\n{}", setup.title(), cases(setup, results));
    for panel in panels {
        text += &format!("\n{}: {}\n{}", panel.title, panel.axis, numbers(panel));
    }
    let failed = results.all.iter().filter_map(|(case, outcome)| Some((case, outcome.as_ref().err()?)));
    let failed: String = failed.map(|(case, why)| format!("{case}: not measured: {why}\n")).collect();
    if failed.is_empty() { text } else { format!("{text}\n{failed}") }
}

fn cases(setup: &MemorySetup, results: &MemoryResults) -> String {
    let mut heading = vec!["test", "threads", "on node", "memory on"];
    if setup.cluster.is_some() {
        heading.extend(["with coherence", "time/local"]);
    }
    heading.extend(["speed", "time/local", "scaling"]);
    if setup.cluster.is_none() {
        heading.extend(["pages asked", "found there"]);
    }
    let mut lines = vec![heading.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (case, outcome) in &results.all {
        let Ok(measured) = outcome else { continue };
        let MemoryCase { threads, node, memory, .. } = case;
        let mut line = vec![case.kernel.test(*threads).to_owned()];
        line.extend([threads.to_string(), node.to_string(), memory.to_string()]);
        let ratio = |ratio: Option<f64>| ratio.map(digits).unwrap_or_default();
        let passes =
            if setup.cluster.is_some() { &[Passes::First, Passes::Again][..] } else { &[Passes::Again] };
        for &passes in passes {
            line.push(
                results.speed(*case, passes).map(|speed| shown(case.kernel, speed)).unwrap_or_default(),
            );
            line.push(ratio(results.times_local(*case, passes)));
        }
        line.push(ratio(results.scaling(*case)));
        if let Some(places) = &measured.places {
            line.push(measured.pages.to_string());
            let found =
                places.pages.as_ref().map(|pages| pages.get(memory).copied().unwrap_or(0).to_string());
            line.push(found.unwrap_or_else(|| "not counted".to_owned()));
        }
        lines.push(line);
    }
    let sides: Vec<Side> =
        (0..lines[0].len()).map(|column| if column == 0 { Side::Left } else { Side::Right }).collect();
    columns(&sides, &lines)
}

/// Bandwidth, or the time of an access, of work in a nanosecond.
fn shown(kernel: Kernel, speed: f64) -> String {
    match kernel {
        Kernel::Chase => format!("{} ns", digits(speed.recip())),
        _ => format!("{} GB/s", digits(speed)),
    }
}

/// A figure in numbers: a line for each group, a column for each series.
fn numbers(panel: &Panel) -> String {
    let heading = std::iter::once(String::new()).chain(panel.series.iter().map(|series| series.name.clone()));
    let mut lines = vec![heading.collect::<Vec<_>>()];
    for (index, group) in panel.groups.iter().enumerate() {
        let value = |spread: &Option<_>| spread.as_ref().map(ToString::to_string).unwrap_or_default();
        let values = panel.series.iter().map(|series| value(&series.values[index]));
        lines.push(std::iter::once(group.clone()).chain(values).collect());
    }
    let sides: Vec<Side> = [Side::Left].into_iter().chain(panel.series.iter().map(|_| Side::Right)).collect();
    columns(&sides, &lines)
}

/// All of it, for programs to read; `machine` is what the figures are from.
pub(super) fn json(machine: Value, setup: &MemorySetup, results: &MemoryResults, panels: &[Panel]) -> Value {
    let case = |(case, outcome): &(MemoryCase, Result<MeasuredMemory, String>)| {
        let MemoryCase { kernel, threads, node, memory } = *case;
        let mut row =
            json!({ "test": kernel.test(threads), "threads": threads, "node": node, "memory": memory });
        match outcome {
            Err(why) => row["not_measured"] = json!(why),
            Ok(measured) => {
                let unit = if kernel == Kernel::Chase { "accesses" } else { "bytes" };
                row["pass"] = json!({ unit: measured.work });
                row["nanoseconds"] = json!(measured.again);
                row["times_local"] = json!(results.times_local(*case, Passes::Again));
                row["scaling"] = json!(results.scaling(*case));
                match &measured.places {
                    None => {
                        row["including_coherence"] = json!({
                            "nanoseconds": measured.first,
                            "times_local": results.times_local(*case, Passes::First),
                        });
                    }
                    Some(places) => {
                        row["asked"] = json!({ "pages": { memory.to_string(): measured.pages } });
                        row["found"] = json!(places);
                    }
                }
            }
        }
        row
    };
    json!({
        "machine": machine,
        "nodes": setup.cluster.map_or("of this computer", |_| "of a run"),
        "working_set": setup.size,
        "cases": results.all.iter().map(case).collect::<Vec<_>>(),
        "figures": panels,
    })
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
