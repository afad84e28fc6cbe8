//! Machines and sets that tests draw.

use gondwana_rset::{RSet, Registry};
use gondwana_topology::{Bytes, Id, Machine, NodeId, NodeSet, ProcessorId, ProcessorSet};
use proptest::prelude::*;

/// A machine of as many processors as there can be.
pub(crate) fn large() -> Machine {
    Machine::uniform(64, 64, Bytes(1 << 34))
}

/// Machines with gaps in all numbers, memory-only nodes, nodes without memory and different distances.
pub(crate) fn machines() -> impl Strategy<Value = Machine> {
    let node = (0..3usize, prop::collection::vec(10..40u32, 8), 1..4u16);
    prop::collection::vec(node, 1..8).prop_map(|nodes| {
        let mut machine = Machine::uniform(u16::try_from(nodes.len()).unwrap(), 9, Bytes(1 << 30));
        for (index, (kind, distances, step)) in nodes.iter().enumerate() {
            let node = &mut machine.nodes[index];
            node.id = NodeId::from_index(index * 31);
            node.processors = node.processors.iter().step_by(usize::from(*step)).collect();
            node.distances = distances[..nodes.len()].to_vec();
            node.distances[index] = 10;
            match kind {
                0 if index > 0 => node.processors = ProcessorSet::EMPTY,
                1 if index > 0 => node.memory.total = Bytes(0),
                _ => {}
            }
        }
        machine.check().unwrap();
        machine
    })
}

/// Any part of a machine, also nothing and everything.
pub(crate) fn parts_of(machine: &Machine) -> impl Strategy<Value = RSet> + use<> {
    let processors: Vec<ProcessorId> = machine.processors().iter().collect();
    let memory: Vec<NodeId> = machine.memory_nodes().iter().collect();
    let some_processors = prop::sample::subsequence(processors.clone(), 0..=processors.len());
    let some_memory = prop::sample::subsequence(memory.clone(), 0..=memory.len());
    (some_processors, some_memory).prop_map(|(processors, memory)| {
        RSet::new(processors.into_iter().collect(), memory.into_iter().collect::<NodeSet>())
    })
}

/// A machine and a part of it.
pub(crate) fn machines_with_part() -> impl Strategy<Value = (Machine, RSet)> {
    machines().prop_flat_map(|machine| {
        let part = parts_of(&machine);
        (Just(machine), part)
    })
}

/// Reads a text without names.
pub(crate) fn parse(text: &str, machine: &Machine) -> RSet {
    RSet::parse(text, machine, &Registry::default()).unwrap_or_else(|error| panic!("{error}"))
}
