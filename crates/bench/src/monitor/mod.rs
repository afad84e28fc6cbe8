//! `gondwana bench monitor`: what watching a run costs.
//!
//! Each program runs with the monitor and without it by turns, so that a change of the computer's mood meets both. Since
//! moods can be worse than what is looked for, there is a second way to the same figure: how often the monitor
//! has noted something, and how long that takes by itself.

mod case;
mod confidence;
mod cost;
mod measure;
mod overhead;
mod report;

use super::choice::choose;
use super::json_file::JsonFile;
use super::machine;
use super::programs::Programs;
use case::MonitorCase;
use cost::Cost;
use gondwana_console::failure::Failure;
use gondwana_topology::MAX_NODES;
use overhead::Overhead;
use report::MonitorOutcome;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `gondwana bench monitor`.
#[derive(Debug, clap::Args)]
pub(crate) struct MonitorOptions {
    /// Nodes of the runs, each with one thread of the workloads
    #[arg(short = 'n', long, value_name = "NODES", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=MAX_NODES as i64))]
    nodes: u16,
    /// How often each program runs with the monitor and without, by turns
    #[arg(long, visible_alias = "rounds", value_name = "PAIRS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pairs: u16,
    /// Measure only the cases whose names begin like this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write the figures as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder of the workloads' sources
    #[arg(long, value_name = "FOLDER", default_value = "apps")]
    apps: PathBuf,
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if one was not measured.
pub(crate) fn monitor(options: &MonitorOptions) -> Result<ExitCode, Failure> {
    let cases = choose(case::all(), &options.only, |case| case.name)?;
    let json = JsonFile::open(options.json.as_deref())?;
    let mut programs = Programs::new()?;
    let workloads = cases.iter().filter(|case| case.is_workload()).map(|case| case.program);
    programs.build(workloads, &options.apps)?;
    let load_before = machine::load();
    let (nodes, pairs) = (options.nodes, usize::from(options.pairs));
    let cost = Cost::measure();
    let outcomes: Vec<MonitorOutcome> =
        cases.iter().map(|case| (*case, measure(case, nodes, pairs, cost, &programs))).collect();
    print!("{}", report::table(nodes, pairs, cost, load_before, &outcomes));
    json.write(|| report::json(machine::facts(load_before), nodes, pairs, cost, &outcomes))?;
    let measured = outcomes.iter().all(|(_, outcome)| outcome.is_ok());
    Ok(if measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(
    case: &MonitorCase,
    nodes: u16,
    count: usize,
    cost: Cost,
    programs: &Programs,
) -> Result<Overhead, String> {
    let (mut pairs, mut last) = (vec![], None);
    // A first run reads its files from the disk, and would not be like the others.
    measure::pair(case, nodes, programs, true)?;
    for number in 0..count {
        eprintln!("gondwana: {}: {} of {count}", case.name, number + 1);
        // By turns also which of the two comes first: caches and files are warm for the second one.
        let (pair, recorded) = measure::pair(case, nodes, programs, number % 2 == 0)?;
        pairs.push(pair);
        last = Some(recorded);
    }
    let recorded = last.unwrap_or_default();
    Overhead::new(pairs, recorded, cost, case.is_workload()).ok_or_else(|| "no pairs".to_owned())
}
