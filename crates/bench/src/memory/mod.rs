//! `gondwana bench memory`: bandwidth and latency of memory, for each pair of a node that works and a node that has the
//! memory, on this computer or on a cluster.
//!
//! The tests are those with which papers show what remote memory costs: copying, reading and writing by one thread and
//! by several, and going from line to line. One program does them on all machines (`bench/programs/memory.c`).

mod case;
mod measure;
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
use gondwana_topology::Bytes;
use ratios::Results;
use serde_json::Value;
use setup::Setup;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `gondwana bench memory`.
#[derive(Debug, clap::Args)]
pub struct MemoryOptions {
    /// Measure the nodes of a run on this computer instead of the computer's own nodes
    #[arg(long)]
    cluster: bool,
    /// The computer's nodes to be measured, as in 0-1,3; with --cluster how many nodes the run has [default: all; 2]
    #[arg(short = 'n', long, value_name = "NODES")]
    nodes: Option<String>,
    /// Memory to work on, as in 64MiB [default: four times the last-level caches of a node]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// The most threads on a node [default: one for each processor; with --cluster the node's share of them]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Write the measurements as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the ratios of remote to local memory, and of several threads to one
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if something was not measured.
pub fn memory(options: &MemoryOptions) -> Result<ExitCode, Failure> {
    let computer = gondwana_host::discover().map_err(|error| Failure::cannot(error.to_string()))?;
    let setup = Setup::new(options, computer)?;
    let open = |option, file: &Option<PathBuf>| {
        file.as_deref().map(|file| Output::open(option, file, Readers::Usual)).transpose()
    };
    let (json, svg) = (open("--json", &options.json)?, open("--svg", &options.svg)?);
    let programs = Programs::new()?;
    let load_before = machine::load();
    let cases = setup.cases();
    let mut results = Results::default();
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
