//! A machine as tables.

use gondwana_console::columns::{Side, amount, columns};
use gondwana_topology::{Cache, CacheKind, HugePages, Machine, MachineNode};

/// The nodes: their resources and distances.
pub(super) fn nodes(machine: &Machine) -> String {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut heading = words(&["node", "processors", "memory", "free", "huge pages", "distance to"]);
    heading.extend(machine.nodes.iter().map(|node| node.id.to_string()));
    let line = |node: &MachineNode| {
        let mut cells = vec![
            node.id.to_string(),
            if node.processors.is_empty() { "none".to_owned() } else { node.processors.to_string() },
            amount(node.memory.total.0),
            node.memory.free.map(|free| amount(free.0)).unwrap_or_default(),
            node.memory.huge.iter().map(huge_pages).collect::<Vec<_>>().join("; "),
            node.label.clone(),
        ];
        let distances =
            machine.nodes.iter().map(|other| machine.distance(node.id, other.id).unwrap_or_default());
        cells.extend(distances.map(|distance| distance.to_string()));
        cells
    };
    let mut sides = vec![Side::Right, Side::Left, Side::Right, Side::Right, Side::Left, Side::Left];
    sides.extend(machine.nodes.iter().map(|_| Side::Right));
    columns(&sides, &[heading].into_iter().chain(machine.nodes.iter().map(line)).collect::<Vec<_>>())
}

fn huge_pages(pages: &HugePages) -> String {
    format!("{} of {}, {} free", pages.total, amount(pages.size.0), pages.free)
}

/// The caches: one line for each kind.
pub(super) fn caches(machine: &Machine) -> String {
    if machine.caches.is_empty() {
        return String::new();
    }
    let alike = |one: &Cache, other: &Cache| {
        (one.level, one.kind, one.size, one.line, one.ways)
            == (other.level, other.kind, other.size, other.line, other.ways)
    };
    let heading = ["cache", "size", "line", "ways", "shared by processors"].map(str::to_owned).to_vec();
    let known = |number: u32| if number == 0 { String::new() } else { number.to_string() };
    let lines = machine.caches.chunk_by(alike).map(|caches| {
        let first = &caches[0];
        let sharing = caches.iter().map(|cache| cache.processors.to_string()).collect::<Vec<_>>().join(" | ");
        vec![name(first), amount(first.size.0), known(first.line), known(first.ways), sharing]
    });
    let sides = [Side::Left, Side::Right, Side::Right, Side::Right, Side::Left];
    columns(&sides, &[heading].into_iter().chain(lines).collect::<Vec<_>>())
}

/// The usual name of a cache.
pub(super) fn name(cache: &Cache) -> String {
    let kind = match cache.kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    format!("L{}{kind}", cache.level)
}

/// The resources that this process may use, in a sentence; empty if it may use all.
pub(super) fn limits(machine: &Machine) -> String {
    let limits = &machine.limits;
    let parts: Vec<String> = [
        limits.processors.map(|processors| format!("processors {processors}")),
        limits.nodes.map(|nodes| format!("memory of nodes {nodes}")),
        limits.memory.map(|memory| format!("{} of memory in all", amount(memory.0))),
        limits.processor_time.map(|time| format!("the time of {time} processors")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { String::new() } else { format!("this process may use {}\n", parts.join("; ")) }
}
