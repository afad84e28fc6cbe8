//! `gondwana bench sim`: how many accesses in a second the simulator simulates, beside the native program and cachegrind.
//!
//! The three take turns, so that a change of the computer's mood meets all of them. Processor time counts: other programs of
//! the computer are not in it, and it is the same whether a program's threads run at once or by turns.

mod case;
mod measure;
mod report;

use super::choice::choose;
use super::json_file::JsonFile;
use super::machine;
use super::programs::Programs;
use gondwana_console::failure::Failure;
use measure::SimSetup;
use report::SimOutcome;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `gondwana bench sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct SpeedOptions {
    /// How often each program runs natively, simulated and under cachegrind, by turns; the least time counts
    #[arg(long, value_name = "ROUNDS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Measure only the programs whose names begin like this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Use the programs' small sizes, of which a run takes milliseconds
    #[arg(long)]
    small: bool,
    /// Write the figures as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The folder of the workloads' sources
    #[arg(long, value_name = "FOLDER", default_value = "apps")]
    apps: PathBuf,
    /// The command that runs valgrind
    #[arg(long, value_name = "COMMAND", default_value = "valgrind")]
    valgrind: OsString,
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out and if there is no valgrind, and 1 if
/// something else was not measured.
pub(crate) fn sim(options: &SpeedOptions) -> Result<ExitCode, Failure> {
    let cases = choose(case::all(), &options.only, |case| case.name)?;
    let json = JsonFile::open(options.json.as_deref())?;
    let mut programs = Programs::new()?;
    programs.build(cases.iter().filter_map(|case| case.workload()), &options.apps)?;
    programs.build_for_simulator(cases.iter().filter_map(|case| case.workload()))?;
    for case in &cases {
        if let Some(source) = case.source {
            programs.compile_both(case.program, source)?;
        }
    }
    let load_before = machine::load();
    let setup = SimSetup {
        rounds: usize::from(options.rounds),
        small: options.small,
        valgrind: measure::find_valgrind(&options.valgrind),
    };
    let outcomes: Vec<SimOutcome> =
        cases.iter().map(|case| (*case, measure::measure(case, &setup, &programs))).collect();
    print!("{}", report::table(&setup, load_before, &outcomes));
    json.write(|| report::json(machine::facts(load_before), &setup, &outcomes))?;
    let can_run = setup.valgrind.is_ok();
    let complete = outcomes
        .iter()
        .all(|(_, outcome)| outcome.as_ref().is_ok_and(|it| !can_run || it.cachegrind.is_ok()));
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
