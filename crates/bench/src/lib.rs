//! `gondwana bench`: how fast the system is, each figure beside what the computer itself could do.
//!
//! Figures and their bounds are measured by turns, so that a change of the computer's mood meets both.

mod apps;
mod chart;
mod child;
mod choice;
mod figures;
mod interrupt;
mod json_file;
mod machine;
mod measure;
mod memory;
mod monitor;
mod openmp;
mod programs;
mod raw;
mod report;
mod samples;
mod sim;

use choice::choose;
use figures::Figure;
use gondwana_console::failure::Failure;
use gondwana_launcher::run::options::Fabric;
use json_file::JsonFile;
use measure::measure;
use programs::Programs;
use report::FigureRow;
use std::path::PathBuf;
use std::process::ExitCode;

/// How often everything is measured.
const REPETITIONS: usize = 5;

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
    /// How the nodes talk
    #[arg(long, value_enum, default_value = "shm")]
    fabric: Fabric,
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
    /// Measure constructs of OpenMP beside the compiler's own runtime
    Openmp(openmp::OpenmpOptions),
    /// Measure the simulator's speed beside native programs and valgrind's cachegrind
    Sim(sim::SpeedOptions),
}

/// Measures, and prints a table. The exit status is 0 however the figures turn out, and 1 if one was not measured.
pub fn bench(options: &BenchOptions) -> Result<ExitCode, Failure> {
    match &options.other {
        Some(Other::Apps(options)) => return apps::apps(options),
        Some(Other::Memory(options)) => return memory::memory(options),
        Some(Other::Monitor(options)) => return monitor::monitor(options),
        Some(Other::Openmp(options)) => return openmp::openmp(options),
        Some(Other::Sim(options)) => return sim::sim(options),
        None => {}
    }
    let chosen = choose(figures::all(options.fabric), &options.only, |figure| figure.name)?;
    let json = JsonFile::open(options.json.as_deref())?;
    let mut programs = Programs::new()?;
    programs
        .build(chosen.iter().flat_map(Figure::runners).filter_map(|runner| runner.app()), &options.apps)?;
    let repetitions = if options.quick { 1 } else { REPETITIONS };
    let load_before = machine::load();
    let results = measure(&chosen, &programs, repetitions);
    let rows: Vec<FigureRow> = chosen.iter().map(|figure| FigureRow::new(figure, &results)).collect();
    print!("{}", report::table(&rows));
    json.write(|| report::json(&rows, options.fabric, repetitions, load_before))?;
    Ok(if rows.iter().all(FigureRow::is_measured) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
