//! `gondwana bench memory`: bandwidth and latency of memory, for each pair of a node that works and a node that has the
//! memory, on this computer or on a cluster.
//!
//! The tests are those with which papers show what remote memory costs: copying, reading and writing by one thread and
//! by several, and going from line to line. One program does them on all machines (`bench/programs/memory.c`).

mod case;
mod measure;
mod options;
mod panels;
mod ratios;
mod report;
mod setup;

use super::chart::{self, Panel};
use super::machine;
use super::programs::Programs;
use gondwana_console::create::Readers;
use gondwana_console::failure::Failure;
use gondwana_console::output::Output;
pub(crate) use options::MemoryOptions;
use ratios::MemoryResults;
use serde_json::Value;
use setup::MemorySetup;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if something was not measured.
pub(crate) fn memory(options: &MemoryOptions) -> Result<ExitCode, Failure> {
    let computer = gondwana_host::discover().map_err(|error| Failure::cannot(error.to_string()))?;
    let setup = MemorySetup::new(options, computer)?;
    let open = |option, file: &Option<PathBuf>| {
        file.as_deref().map(|file| Output::open(option, file, Readers::Usual)).transpose()
    };
    let (json, svg) = (open("--json", &options.json)?, open("--svg", &options.svg)?);
    let programs = Programs::new()?;
    let load_before = machine::load();
    let cases = setup.cases();
    let mut results = MemoryResults::default();
    for (number, &case) in cases.iter().enumerate() {
        eprintln!("gondwana: {} of {}: {case}", number + 1, cases.len());
        results.add(case, measure::measure(&setup, &programs, case));
    }
    let panels = panels::panels(&results, setup.cluster.is_some());
    print!("{}", report::table(&setup, &results, &panels));
    let facts = machine::facts(load_before);
    if let Some(file) = svg {
        file.write(&chart::svg(&setup.title(), &subtitle(&facts, &panels), &panels))?;
    }
    if let Some(file) = json {
        file.write(&format!("{:#}\n", report::json(facts, &setup, &results, &panels)))?;
    }
    let measured = results.all.iter().all(|(_, outcome)| outcome.is_ok());
    Ok(if measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the drawing is from, or why there is nothing in it.
fn subtitle(facts: &Value, panels: &[Panel]) -> String {
    let processors = match &facts["processors"] {
        one if *one == 1 => "1 processor".to_owned(),
        more => format!("{more} processors"),
    };
    let more = match panels {
        [] => "one node and one thread: nothing to compare",
        _ => "bars: medians, lines: least to greatest",
    };
    format!("{}, {processors}; {more}", facts["processor"].as_str().unwrap_or_default())
}
