//! `gondwana bench apps`: programs of many kinds on nodes, each beside the native run.
//!
//! A first run natively and of each fabric is not timed: it tells the result, which must be the native one, and what the program waits for.
//! Then they take turns, so that a change of the computer's mood meets all of them.

mod case;
mod measure;
mod ratios;
mod report;

use super::choice::{Fabrics, choose};
use super::json_file::JsonFile;
use super::machine;
use super::programs::Programs;
use gondwana_console::failure::Failure;
use gondwana_topology::MAX_NODES;
use measure::AppSetup;
use report::AppOutcome;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `gondwana bench apps`.
#[derive(Debug, clap::Args)]
pub(crate) struct AppsOptions {
    /// Nodes of the runs, each with one thread of the workloads; natively there are no more threads than processors
    #[arg(short = 'n', long, value_name = "NODES", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=MAX_NODES as i64))]
    nodes: u16,
    #[command(flatten)]
    fabrics: Fabrics,
    /// How often each program runs natively and on nodes, by turns; the least time counts
    #[arg(long, value_name = "ROUNDS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// End a run that takes more than so many times the native one
    #[arg(long, value_name = "TIMES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    limit: u32,
    /// Measure only the programs whose names begin like this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Use the programs' small sizes, of which a run takes milliseconds
    #[arg(long)]
    small: bool,
    /// Write the figures and the counters as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder of the workloads' sources
    #[arg(long, value_name = "FOLDER", default_value = "apps")]
    apps: PathBuf,
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if one was not measured.
pub(crate) fn apps(options: &AppsOptions) -> Result<ExitCode, Failure> {
    let cases = choose(case::all(), &options.only, |case| case.name)?;
    let json = JsonFile::open(options.json.as_deref())?;
    let mut programs = Programs::new()?;
    programs.build(cases.iter().map(|case| case.program), &options.apps)?;
    let load_before = machine::load();
    let setup = AppSetup {
        nodes: options.nodes,
        native_threads: u16::try_from(gondwana_launcher::probes::processors())
            .map_or(options.nodes, |processors| options.nodes.min(processors)),
        fabrics: options.fabrics.chosen(),
        rounds: usize::from(options.rounds),
        limit: options.limit,
        small: options.small,
    };
    let outcomes: Vec<AppOutcome> =
        cases.iter().map(|case| (*case, measure::measure(case, &setup, &programs))).collect();
    print!("{}", report::table(&setup, load_before, &outcomes));
    json.write(|| report::json(machine::facts(load_before), &setup, &outcomes))?;
    let measured = outcomes.iter().all(|(_, outcome)| outcome.as_ref().is_ok_and(|it| it.is_complete()));
    Ok(if measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
