//! `gondwana bench`: how fast the system is, each figure beside what the computer itself could do.
//!
//! Figures and their bounds are measured by turns, so that a change of the computer's mood meets both.

mod apps;
mod chart;
mod child;
mod figures;
mod interrupt;
mod machine;
mod memory;
mod monitor;
mod programs;
mod raw;
mod report;
mod samples;

use figures::{Figure, Runner};
use gondwana_console::create::Readers;
use gondwana_console::failure::Failure;
use gondwana_console::output::Output;
use programs::Programs;
use report::Row;
use samples::Samples;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// How often everything is measured.
const REPETITIONS: usize = 5;

/// How often each time what is over soon: a moment in which the computer serves others is most of it.
const TURNS: usize = 5;

/// Options of `gondwana bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchOptions {
    #[command(subcommand)]
    other: Option<Other>,
    /// Measure only the figures whose names begin like this; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write the figures as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure everything once instead of five times
    #[arg(long)]
    quick: bool,
    /// The folder of the workloads' sources
    #[arg(long, value_name = "FOLDER", default_value = "apps")]
    apps: PathBuf,
}

/// Other things to measure.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Measure programs of many kinds on nodes beside the native run
    Apps(apps::AppsOptions),
    /// Measure bandwidth and latency of memory, near and far, for each pair of nodes
    Memory(memory::MemoryOptions),
    /// Measure what monitoring a run costs
    Monitor(monitor::MonitorOptions),
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if one was not measured.
pub fn bench(options: &BenchOptions) -> Result<ExitCode, Failure> {
    match &options.other {
        Some(Other::Apps(options)) => return apps::apps(options),
        Some(Other::Memory(options)) => return memory::memory(options),
        Some(Other::Monitor(options)) => return monitor::monitor(options),
        None => {}
    }
    let chosen = choose(figures::all(), &options.only, |figure| figure.name)?;
    let output =
        options.json.as_deref().map(|file| Output::open("--json", file, Readers::Usual)).transpose()?;
    let mut programs = Programs::new()?;
    programs
        .build(chosen.iter().flat_map(Figure::runners).filter_map(|runner| runner.app()), &options.apps)?;
    let repetitions = if options.quick { 1 } else { REPETITIONS };
    let load_before = machine::load();
    let results = measure(&chosen, &programs, repetitions);
    let rows: Vec<Row> = chosen.iter().map(|figure| Row::new(figure, &results)).collect();
    print!("{}", report::table(&rows));
    if let Some(file) = output {
        file.write(&format!("{:#}\n", report::json(&rows, repetitions, load_before)))?;
    }
    Ok(if rows.iter().all(Row::is_measured) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Those whose names begin like one of `only`, or all of them.
fn choose<T>(all: Vec<T>, only: &[String], name: impl Fn(&T) -> &'static str) -> Result<Vec<T>, Failure> {
    if let Some(unknown) = only.iter().find(|only| !all.iter().any(|one| name(one).starts_with(*only))) {
        let names: Vec<_> = all.iter().map(name).collect();
        return Err(Failure::usage(format!(
            "no figure begins with {unknown}; there are {}",
            names.join(", ")
        )));
    }
    let wanted = |one: &T| only.is_empty() || only.iter().any(|only| name(one).starts_with(only.as_str()));
    Ok(all.into_iter().filter(wanted).collect())
}

/// What each runner has measured, or why it has not.
type Results = HashMap<Runner, Result<Samples, String>>;

fn measure(chosen: &[Figure], programs: &Programs, repetitions: usize) -> Results {
    // The bounds of a figure come directly before it; what several figures share runs once in each repetition.
    let mut order: Vec<Runner> = Vec::new();
    for runner in chosen.iter().flat_map(Figure::runners) {
        if !order.contains(&runner) {
            order.push(runner);
        }
    }
    let turns = if repetitions > 1 { TURNS } else { 1 };
    let mut results = Results::new();
    for repetition in 1..=repetitions {
        for runner in &order {
            eprintln!("gondwana: {repetition} of {repetitions}: {runner}");
            run_once(runner, programs, &mut results);
        }
        // By turns, like everything.
        let short: Vec<_> = order.iter().filter(|runner| runner.is_short(results.get(runner))).collect();
        for _ in 1..turns {
            short.iter().for_each(|runner| run_once(runner, programs, &mut results));
        }
    }
    results
}

fn run_once(runner: &Runner, programs: &Programs, results: &mut Results) {
    let so_far = results.entry(runner.clone()).or_insert_with(|| Ok(Samples::default()));
    // What has failed once is not tried again: it may have taken its time.
    if let Ok(samples) = so_far
        && let Err(why) = runner.run(programs, samples)
    {
        *so_far = Err(format!("{runner}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_chosen_by_the_beginnings_of_their_names() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            choose(figures::all(), &only, |figure| figure.name)
                .map(|figures| figures.iter().map(|f| f.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["barrier"]).unwrap(), ["barrier"]);
        assert_eq!(names(&["release"]).unwrap(), ["release-bytes", "release-words", "release-doubles"]);
        assert_eq!(names(&[]).unwrap().len(), figures::all().len());
        assert!(names(&["barrier", "speed"]).unwrap_err().message.contains("no figure begins with speed"));
    }
}
