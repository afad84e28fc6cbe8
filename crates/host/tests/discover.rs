//! Computers as they are discovered.

mod common;

use common::Computer;
use gondwana_host::{discover, recorded};
use gondwana_topology::{Bytes, CacheKind, HugePages, NodeId, ProcessorId};
use std::path::Path;

/// The computer that is recorded in `tests/computers`.
fn named(name: &str) -> Computer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/computers").join(format!("{name}.txt"));
    Computer::of(&std::fs::read_to_string(file).unwrap())
}

#[test]
fn four_nodes_and_one_with_memory_only() {
    let machine = recorded(&named("four-nodes-and-memory")).unwrap();
    assert_eq!(machine.name, "quad");
    let processors: Vec<String> = machine.nodes.iter().map(|node| node.processors.to_string()).collect();
    // Processors 11 and 14 are switched off, although node 2 lists one of them.
    assert_eq!(processors[..4], ["0-3", "4-7", "8-10", "12-13,15"]);
    assert!(machine.nodes[4].processors.is_empty());
    assert_eq!(machine.nodes[4].memory.total, Bytes(128 << 30));
    assert_eq!(machine.nodes[1].memory.free, Some(Bytes(1_000_000 << 10)));
    assert_eq!(machine.distance(NodeId(0), NodeId(3)), Some(33));
    assert_eq!(machine.distance(NodeId(3), NodeId(4)), Some(20));
    let huge = [(2 << 20, 128, 100), (1 << 30, 2, 2)];
    let huge = huge.map(|(size, total, free)| HugePages { size: Bytes(size), total, free });
    assert_eq!(machine.nodes[1].memory.huge, huge);
    assert!(machine.nodes[0].memory.huge.is_empty());
}

#[test]
fn each_cache_and_each_core_is_there_once() {
    let machine = recorded(&named("four-nodes-and-memory")).unwrap();
    let cores: Vec<String> = machine.cores.iter().map(ToString::to_string).collect();
    assert_eq!(cores, ["0-1", "2-3", "4-5", "6-7", "8-9", "10", "12-13", "15"]);
    assert_eq!(machine.packages.len(), 4);
    let at = |level, kind| machine.caches.iter().filter(move |c| (c.level, c.kind) == (level, kind)).count();
    let counts = [at(1, CacheKind::Data), at(1, CacheKind::Instruction), at(2, CacheKind::Unified)];
    assert_eq!((counts, at(3, CacheKind::Unified)), ([8, 8, 8], 4));
    let last = machine.caches.iter().find(|cache| cache.level == 3).unwrap();
    assert_eq!((last.size, last.line, last.ways), (Bytes(16 << 20), 64, 16));
    assert!(last.processors.contains(ProcessorId(3)));
}

#[test]
fn a_kernel_without_numa_is_one_node() {
    let machine = recorded(&named("without-numa")).unwrap();
    assert_eq!(machine.nodes.len(), 1);
    assert_eq!(machine.nodes[0].processors.to_string(), "0-1");
    assert_eq!(machine.nodes[0].memory.total, Bytes(2_048_000 << 10));
    assert_eq!(machine.nodes[0].memory.free, Some(Bytes(1_024_000 << 10)));
}

#[test]
fn a_node_with_nothing_is_left_out_of_the_distances_too() {
    let machine = recorded(&named("a-node-with-nothing")).unwrap();
    assert_eq!(machine.node_ids().to_string(), "0,5");
    assert_eq!(machine.nodes[0].distances, [10, 20]);
    assert_eq!(machine.nodes[1].distances, [20, 10]);
}

#[test]
fn what_makes_no_sense_is_said_in_one_sentence() {
    let error = recorded(&named("a-list-that-is-none")).unwrap_err().to_string();
    assert!(error.contains("sys/devices/system/cpu/online cannot be read"), "{error}");
    let error = recorded(&named("too-many-nodes")).unwrap_err().to_string();
    assert!(error.contains("sys/devices/system/node/online cannot be read"), "{error}");
    let error = recorded(&named("no-processors-in-nodes")).unwrap_err().to_string();
    assert!(error.starts_with("the kernel describes a computer that cannot be: "), "{error}");
    let error = recorded(&Computer::of("proc/meminfo\tMemTotal: 1 kB")).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn this_computer_has_processors_and_memory() {
    let machine = discover().unwrap();
    machine.check().unwrap();
    let allowed = gondwana_host::sys::affinity(0).unwrap();
    assert_eq!(machine.allowed_processors(), allowed);
    assert!(!machine.allowed_memory_nodes().is_empty());
    assert!(machine.nodes.iter().all(|node| node.memory.free.is_some()));
}
