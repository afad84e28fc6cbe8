//! A machine as a text drawing: a box for each node, side by side as far as they fit.

use super::tables::name;
use gondwana_console::columns::{amount, to_whole};
use gondwana_topology::{Cache, Machine, MachineNode, NodeId, ProcessorId, ProcessorSet};

/// Nothing inside a box is wider.
const WIDEST: usize = 40;
/// Nothing inside a box is narrower: bars of memory fit.
const NARROWEST: usize = 22;

/// The drawing, for a terminal of this width.
pub fn picture(machine: &Machine, columns: usize) -> String {
    boxes(machine.nodes.iter().map(|node| (node.id, content(machine, node))).collect(), columns)
}

/// A box for each node with these lines, truncated to the width, side by side as far as they fit.
pub fn boxes(mut nodes: Vec<(NodeId, Vec<String>)>, columns: usize) -> String {
    for line in nodes.iter_mut().flat_map(|(_, lines)| lines) {
        *line = line.chars().take(WIDEST).collect();
    }
    let lines = nodes.iter().flat_map(|(_, lines)| lines);
    let widest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
    let width = widest.max(NARROWEST);
    let beside = (columns / (width + 5)).max(1);
    nodes.chunks(beside).map(|nodes| row(nodes, width)).collect()
}

/// The processors of a node, in lines that fit into its box.
pub fn processors(machine: &Machine, node: &MachineNode) -> Vec<String> {
    let lines = wrapped(cores(machine, node));
    if lines.is_empty() { vec!["no processors".to_owned()] } else { lines }
}

/// The lines of a node's box.
fn content(machine: &Machine, node: &MachineNode) -> Vec<String> {
    let mut lines = processors(machine, node);
    let own: Vec<&Cache> =
        machine.caches.iter().filter(|cache| cache.processors.intersects(&node.processors)).collect();
    for alike in
        own.chunk_by(|one, other| (one.level, one.kind, one.size) == (other.level, other.kind, other.size))
    {
        let times = if alike.len() > 1 { format!(" x {}", alike.len()) } else { String::new() };
        lines.push(format!("{} {}{times}", name(alike[0]), amount(alike[0].size.0)));
    }
    if node.memory.total.0 == 0 {
        lines.push("no memory".to_owned());
        return lines;
    }
    let allowed = machine.limits.nodes.is_none_or(|nodes| nodes.contains(node.id));
    let forbidden = if allowed { "" } else { ", forbidden" };
    let free = node.memory.free.map(|free| format!(", {} free", amount(free.0))).unwrap_or_default();
    lines.push(format!("{}{free}{forbidden}", amount(node.memory.total.0)));
    if let Some(free) = node.memory.free {
        lines.push(bar(node.memory.total.0 - free.0, node.memory.total.0));
    }
    lines
}

/// Processors, those of a core in brackets; those that this process may not use in parentheses.
fn cores(machine: &Machine, node: &MachineNode) -> Vec<String> {
    let allowed = machine.limits.processors;
    let name = |processor: ProcessorId| match allowed.is_none_or(|allowed| allowed.contains(processor)) {
        true => processor.to_string(),
        false => format!("({processor})"),
    };
    let mut rest = node.processors;
    let mut cores = vec![];
    while let Some(first) = rest.first() {
        let core = machine.cores.iter().find(|core| core.contains(first)).copied();
        let core = core.unwrap_or(ProcessorSet::only(first)).intersection(&rest);
        rest = rest.difference(&core);
        cores.push(format!("[{}]", core.iter().map(name).collect::<Vec<_>>().join(" ")));
    }
    cores
}

/// Words, wrapped into lines that fit into a box.
fn wrapped(words: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in words {
        match lines.last_mut().filter(|line| line.len() + 1 + word.len() <= WIDEST) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word),
        }
    }
    lines
}

/// How much of something is used.
fn bar(used: u64, total: u64) -> String {
    let cells = NARROWEST - 2;
    let full = to_whole((used as f64 / total as f64 * cells as f64).round());
    let full = usize::try_from(full).unwrap_or(cells);
    format!("[{}{}]", "#".repeat(full), "-".repeat(cells - full))
}

/// Boxes side by side, of equal height.
fn row(nodes: &[(NodeId, Vec<String>)], width: usize) -> String {
    let line = |cells: Vec<String>| format!("{}\n", cells.join(" "));
    let top = line(
        nodes
            .iter()
            .map(|(id, _)| {
                let title = format!("- node {id} ");
                format!("+{title:-<0$}+", width + 2)
            })
            .collect(),
    );
    let height = nodes.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
    let middle = (0..height).map(|index| {
        let text = |lines: &Vec<String>| lines.get(index).cloned().unwrap_or_default();
        line(nodes.iter().map(|(_, lines)| format!("| {:<width$} |", text(lines))).collect())
    });
    let bottom = line(nodes.iter().map(|_| format!("+{}+", "-".repeat(width + 2))).collect());
    format!("{top}{}{bottom}", middle.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let text = r#"
            cores = ["0-1", "2-3"]
            limits = { processors = "0,2-3", nodes = "0" }
            [[node]]
            id = 0
            processors = "0-3"
            memory = { total = "64GiB", free = "16GiB" }
            [[node]]
            id = 7
            memory = { total = "1TiB" }
            [[cache]]
            level = 1
            size = "32KiB"
            processors = "0-1"
            [[cache]]
            level = 1
            size = "32KiB"
            processors = "2-3"
        "#;
        Machine::from_toml(text).unwrap()
    }

    #[test]
    fn nodes_are_boxes_beside_each_other() {
        let expected = "\
+- node 0 ---------------+ +- node 7 ---------------+
| [0 (1)] [2 3]          | | no processors          |
| L1 32 KiB x 2          | | 1 TiB, forbidden       |
| 64 GiB, 16 GiB free    | |                        |
| [###############-----] | |                        |
+------------------------+ +------------------------+
";
        assert_eq!(picture(&machine(), 80), expected);
    }

    #[test]
    fn a_narrow_terminal_has_them_below_each_other() {
        let picture = picture(&machine(), 30);
        assert!(picture.lines().all(|line| line.len() <= 30), "{picture}");
        assert_eq!(picture.lines().filter(|line| line.contains("node")).count(), 2);
    }

    #[test]
    fn many_processors_take_many_lines() {
        let machine = Machine::uniform(1, 100, gondwana_topology::Bytes(1 << 30));
        let picture = picture(&machine, 80);
        assert!(picture.lines().all(|line| line.len() <= WIDEST + 4), "{picture}");
        assert!(picture.contains("[99]"));
    }
}
