//! `gondwana topo`: the nodes of a machine, their processors, caches and memory, and how far they are apart.

mod cluster;

pub(crate) use cluster::time;

use gondwana_console::failure::Failure;
use gondwana_console::output::{json, print};
use gondwana_report::machine::text;
use gondwana_topology::Machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `gondwana topo`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopoOptions {
    /// Show the machine that a file (TOML) describes instead of this computer
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Show the nodes of a running cluster: PID is the process of its gondwana run; without it, your only run or a list of
    /// all
    #[arg(long, value_name = "PID", num_args = 0..=1, conflicts_with = "machine",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    run: Option<Option<u32>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows a machine.
pub(crate) fn topo(options: &TopoOptions) -> Result<ExitCode, Failure> {
    let columns = gondwana_console::terminal::columns_of_standard_output();
    if let Some(run) = options.run {
        let shown = match run {
            Some(process) => cluster::one(process, options.json, columns)?,
            None => cluster::all(options.json, columns)?,
        };
        return print(&shown);
    }
    let machine = match &options.machine {
        Some(path) => described(path)?,
        None => gondwana_host::discover().map_err(|error| Failure::cannot(error.to_string()))?,
    };
    if options.json {
        return print(&json(&machine));
    }
    print(&text(&machine, columns))
}

/// The machine that a file describes.
pub(crate) fn described(path: &Path) -> Result<Machine, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::cannot(format!("{} cannot be read: {error}", path.display())))?;
    Machine::from_toml(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
