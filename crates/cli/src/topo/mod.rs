//! `gondwana topo`: the nodes of a machine, their processors, caches and memory, and how far they are apart.

mod cluster;
mod picture;
mod tables;

pub use cluster::time;

use crate::failure::Failure;
use crate::output::{json, print};
use gondwana_topology::{Machine, View};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `gondwana topo`.
#[derive(Debug, clap::Args)]
pub struct TopoOptions {
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
pub fn topo(options: &TopoOptions) -> Result<ExitCode, Failure> {
    let columns = crate::terminal::columns_of_standard_output();
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
pub fn described(path: &Path) -> Result<Machine, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::cannot(format!("{} cannot be read: {error}", path.display())))?;
    Machine::from_toml(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Everything, for a terminal with so many columns.
pub fn text(machine: &Machine, columns: usize) -> String {
    let parts = [
        title(machine),
        picture::picture(machine, columns),
        tables::nodes(machine),
        tables::caches(machine),
        tables::limits(machine),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A number of things.
fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        more => format!("{more} {what}s"),
    }
}

fn title(machine: &Machine) -> String {
    let name = match (machine.name.as_str(), machine.view) {
        ("", View::Host) => "this computer",
        ("", View::Cluster) => "cluster",
        ("", View::Described) => "described machine",
        (name, _) => name,
    };
    let total = machine.nodes.iter().map(|node| node.memory.total.0).sum();
    let nodes = count(machine.nodes.len(), "node");
    let processors = count(machine.processors().len(), "processor");
    format!("{name}: {nodes}, {processors}, {} of memory\n", crate::columns::amount(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUAD: &str = r#"
        name = "quad"
        cores = ["0-1", "2-3"]
        limits = { processors = "0,2-3", nodes = "0,1", memory = "1GiB", processor_time = 1.5 }
        [[node]]
        id = 0
        processors = "0-3"
        distances = [10, 21, 30]
        memory = { total = "64GiB", free = "16GiB", huge = [{ size = "2MiB", total = 8, free = 3 }] }
        [[node]]
        id = 1
        processors = "4-5"
        distances = [21, 10, 30]
        memory = { total = "64GiB" }
        [[node]]
        id = 7
        distances = [30, 30, 10]
        memory = { total = "1TiB", free = "1TiB" }
        [[cache]]
        level = 1
        kind = "data"
        size = "32KiB"
        line = 64
        ways = 8
        processors = "0-1"
        [[cache]]
        level = 1
        kind = "data"
        size = "32KiB"
        line = 64
        ways = 8
        processors = "2-3"
        [[cache]]
        level = 3
        size = "16MiB"
        processors = "0-3"
    "#;

    #[test]
    fn a_machine_is_a_title_a_picture_and_tables() {
        let machine = Machine::from_toml(QUAD).unwrap();
        let text = text(&machine, 80);
        assert!(text.starts_with("quad: 3 nodes, 6 processors, 1.1 TiB of memory\n\n+- node 0 -"), "{text}");
        let tables = "
node  processors  memory    free  huge pages          distance to   0   1   7
   0  0-3         64 GiB  16 GiB  8 of 2 MiB, 3 free               10  21  30
   1  4-5         64 GiB                                           21  10  30
   7  none         1 TiB   1 TiB                                   30  30  10

cache    size  line  ways  shared by processors
L1d    32 KiB    64     8  0-1 | 2-3
L3     16 MiB              0-3

this process may use processors 0,2-3; memory of nodes 0-1; 1 GiB of memory in all; the time of 1.5 processors
";
        assert!(text.ends_with(tables), "{text}");
    }
}
