//! A machine as text: its nodes with their processors, caches and memory, and how far they are apart.

pub mod picture;
mod tables;

use gondwana_console::columns::{amount, counted};
use gondwana_topology::{Machine, View};

/// The whole text, for a terminal of this width.
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

fn title(machine: &Machine) -> String {
    let name = match (machine.name.as_str(), machine.view) {
        ("", View::Host) => "this computer",
        ("", View::Cluster) => "cluster",
        ("", View::Described) => "described machine",
        (name, _) => name,
    };
    let total = machine.nodes.iter().map(|node| node.memory.total.0).sum();
    let nodes = counted(machine.nodes.len(), "node");
    let processors = counted(machine.processors().len(), "processor");
    format!("{name}: {nodes}, {processors}, {} of memory\n", amount(total))
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
