//! `gondwana debug`: attaches gdb to a node of a run.

use gondwana_console::failure::Failure;
use gondwana_launcher::run_registry::ask;
use gondwana_launcher::run_registry::requests::Request;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What gdb is told first: faults on shared memory are signals that the runtime handles, and libraries that the program opens
/// later may have the functions that are asked for.
const SETTINGS: [&str; 2] = ["handle SIGBUS nostop noprint pass", "set breakpoint pending on"];

/// Options of `gondwana debug`.
#[derive(Debug, clap::Args)]
pub(crate) struct DebugOptions {
    /// The process of the gondwana run (gondwana topo --run lists yours)
    #[arg(value_name = "RUN", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    run: u32,
    /// The node
    #[arg(long, value_name = "N", default_value_t = 0)]
    node: u16,
    /// Further arguments for gdb
    #[arg(value_name = "ARGUMENTS", last = true)]
    arguments: Vec<std::ffi::OsString>,
}

/// Attaches gdb, which takes this process's place.
pub(crate) fn debug(options: &DebugOptions) -> Result<ExitCode, Failure> {
    let DebugOptions { run, node, .. } = *options;
    let running = ask::ask(run)?;
    let Some(there) = running.nodes.get(usize::from(node)) else {
        return Err(Failure::usage(format!(
            "--node {node}: the run has nodes 0 to {}",
            running.nodes.len() - 1
        )));
    };
    let Some(process) = there.process else {
        return Err(Failure::cannot(format!("node {node} has no process yet: try again in a moment")));
    };
    let settings: Vec<String> = SETTINGS.iter().map(|setting| format!("-iex '{setting}'")).collect();
    if let Some(host) = &there.host {
        return Err(Failure::cannot(format!(
            "node {node} is on host {host}: run there gdb {} -p {process}",
            settings.join(" ")
        )));
    }
    ask::request(run, &Request::LetTrace { process: std::process::id(), node })?;
    let mut gdb = Command::new("gdb");
    for setting in SETTINGS {
        gdb.args(["-iex", setting]);
    }
    gdb.args(["-p", &process.to_string()]).args(&options.arguments);
    let error = gdb.exec();
    Err(Failure::cannot(match error.kind() {
        ErrorKind::NotFound => "gdb is not installed: install it (apt-get install gdb)".to_owned(),
        _ => format!("gdb cannot be started: {error}"),
    }))
}
