//! `gondwana stack`: what the threads of a run are doing.

mod text;

use gondwana_console::failure::Failure;
use gondwana_console::output::{json, print};
use gondwana_launcher::run_registry::ask;
use std::process::ExitCode;

/// Options of `gondwana stack`.
#[derive(Debug, clap::Args)]
pub(crate) struct StackOptions {
    /// The process of the gondwana run (gondwana topo --run lists yours)
    #[arg(value_name = "RUN", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    run: u32,
    /// Show the threads of the runtime, too
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows all threads of a run.
pub(crate) fn stack(options: &StackOptions) -> Result<ExitCode, Failure> {
    let mut report = ask::stacks(options.run)?;
    if !options.all {
        report.threads.retain(|thread| thread.thread.is_some());
    }
    print(&if options.json { json(&report) } else { text::render(&report) })
}
