//! `gondwana bench openmp`: what constructs of OpenMP cost on nodes, beside the compiler's own runtime on one computer.
//!
//! Natively and over each fabric the same program runs by turns, with as many threads as there are nodes.

mod measure;
mod report;

use super::choice::Fabrics;
use super::json_file::JsonFile;
use super::machine;
use super::programs::Programs;
use gondwana_console::failure::Failure;
use gondwana_topology::MAX_NODES;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `gondwana bench openmp`.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenmpOptions {
    /// Nodes of the runs, each with one thread; natively there are as many threads
    #[arg(short = 'n', long, value_name = "NODES", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=MAX_NODES as i64))]
    nodes: u16,
    #[command(flatten)]
    fabrics: Fabrics,
    /// How often everything is measured, by turns
    #[arg(long, value_name = "ROUNDS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Write the figures as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if some were not measured.
pub(crate) fn openmp(options: &OpenmpOptions) -> Result<ExitCode, Failure> {
    let json = JsonFile::open(options.json.as_deref())?;
    let programs = Programs::new()?;
    let load_before = machine::load();
    let ways =
        measure::measure(&programs, options.nodes, &options.fabrics.chosen(), usize::from(options.rounds));
    print!("{}", report::table(options.nodes, options.rounds, &ways));
    json.write(|| report::json(machine::facts(load_before), options.nodes, options.rounds, &ways))?;
    let measured = ways.iter().all(|way| way.failed.is_none());
    Ok(if measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
