use super::*;
use gondwana_topology::Bytes;
use std::num::NonZeroU64;

/// Four nodes; 0 and 1 are near each other, 2 and 3 too. Node 3 has no processors.
fn machine() -> Machine {
    let mut machine = Machine::uniform(4, 2, Bytes(1 << 30));
    let rows = [[10, 15, 30, 30], [15, 10, 30, 30], [30, 30, 10, 12], [30, 30, 12, 10]];
    for (node, row) in machine.nodes.iter_mut().zip(rows) {
        node.distances = row.to_vec();
    }
    machine.nodes[3].processors = Default::default();
    machine
}

fn set(processors: &str, memory: &str) -> RSet {
    RSet::new(processors.parse().unwrap(), memory.parse().unwrap())
}

/// The nodes of the pages of a region; the touching thread is on node 2.
fn nodes(policy: MemoryPolicy, memory: &str, pages: u64) -> Vec<u16> {
    let placement = Placement::new(policy, &set("0-3", memory), &machine()).unwrap();
    (0..pages).map(|page| placement.node_of(page, pages, NodeId(2)).unwrap().0).collect()
}

fn striped(stride: u64) -> MemoryPolicy {
    MemoryPolicy::Striped(NonZeroU64::new(stride).unwrap())
}

#[test]
fn pages_are_where_the_policy_says() {
    assert_eq!(nodes(striped(1), "0,2-3", 7), [0, 2, 3, 0, 2, 3, 0]);
    assert_eq!(nodes(striped(2), "1,3", 7), [1, 1, 3, 3, 1, 1, 3]);
    assert_eq!(nodes(MemoryPolicy::Block, "0-3", 8), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(nodes(MemoryPolicy::Block, "0-2", 7), [0, 0, 0, 1, 1, 2, 2]);
    assert_eq!(nodes(MemoryPolicy::Block, "0-3", 2), [0, 2]);
    assert_eq!(nodes(MemoryPolicy::Local, "0-3", 2), [2, 2]);
    assert_eq!(nodes(MemoryPolicy::Local, "0-1,3", 1), [3], "the nearest one of the set");
    assert_eq!(nodes(MemoryPolicy::Remote, "0-3", 1), [3]);
    assert_eq!(nodes(MemoryPolicy::Remote, "0-2", 1), [0], "after the last one comes the first");
    assert_eq!(nodes(MemoryPolicy::Remote, "1-2", 1), [1]);
    assert_eq!(nodes(MemoryPolicy::Explicit("0-1".parse().unwrap()), "0-3", 1), [0]);
}

#[test]
fn parts_follow_each_other() {
    let part = |pages, node| PlacementPart { pages, node: NodeId(node) };
    let parts = [part(2, 1), part(1, 0), part(1, 0), part(0, 2), part(2, 3)];
    let placement = Placement::of_parts(&parts, &set("0-3", "0-3"), &machine()).unwrap();
    let nodes = |pages| -> Vec<u16> {
        (0..pages).map(|page| placement.node_of(page, pages, NodeId(2)).unwrap().0).collect()
    };
    assert_eq!(nodes(8), [1, 1, 0, 0, 3, 3, 3, 3], "the last part goes on");
    assert!(!placement.follows_touch());
    let runs = |pages| placement.runs(pages, NodeId(2)).map(|run| (run.first, run.count)).collect::<Vec<_>>();
    assert_eq!(runs(8), [(0, 2), (2, 2), (4, 4)]);
    assert_eq!(runs(3), [(0, 2), (2, 1)]);
    let refused = |parts: &[PlacementPart], memory| {
        Placement::of_parts(parts, &set("0-3", memory), &machine()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&parts, "0-2"),
        "mem:3 is asked for, which isn't in the resource set proc:0-3|mem:0-2"
    );
    assert_eq!(refused(&[], "0-2"), "the resource set none has no memory");
}

#[test]
fn the_system_chooses_where_pages_float() {
    let placement = Placement::new(MemoryPolicy::Float, &set("0", "1-2"), &machine()).unwrap();
    assert_eq!(placement.node_of(0, 1, NodeId(0)), None);
    assert_eq!(placement.nodes(), [NodeId(1), NodeId(2)]);
    let whole = PageRange { first: 0, count: 9, node: None };
    assert_eq!(placement.runs(9, NodeId(0)).collect::<Vec<_>>(), [whole]);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let refused = |policy, rset: &RSet| Placement::new(policy, rset, &machine()).unwrap_err().to_string();
    assert_eq!(refused(MemoryPolicy::Local, &set("0", "")), "the resource set proc:0 has no memory");
    assert_eq!(
        refused(MemoryPolicy::Remote, &set("0-3", "1")),
        "no memory of the resource set proc:0-3|mem:1 is remote: it is all on the node of its processors"
    );
    assert!(Placement::new(MemoryPolicy::Remote, &set("0-1", "1"), &machine()).is_ok());
    assert_eq!(
        refused(MemoryPolicy::Explicit("1-2".parse().unwrap()), &set("0", "0-1")),
        "mem:2 is asked for, which isn't in the resource set proc:0|mem:0-1"
    );
    assert_eq!(
        refused(MemoryPolicy::Explicit(NodeSet::EMPTY), &set("0", "0-1")),
        "the resource set none has no memory"
    );
    assert_eq!(refused(MemoryPolicy::Block, &set("0", "0,9")), "the machine doesn't have mem:9");
}

#[test]
fn the_largest_numbers_are_no_exception() {
    let all = set("0-3", "0-3");
    let last =
        |policy| Placement::new(policy, &all, &machine()).unwrap().node_of(u64::MAX - 1, u64::MAX, NodeId(0));
    assert_eq!(last(MemoryPolicy::Block), Some(NodeId(3)));
    assert_eq!(last(striped(u64::MAX)), Some(NodeId(0)));
    let placement = Placement::new(striped(u64::MAX), &all, &machine()).unwrap();
    assert_eq!(placement.runs(u64::MAX, NodeId(0)).count(), 1);
    let placement = Placement::new(MemoryPolicy::Block, &all, &machine()).unwrap();
    assert_eq!(placement.runs(u64::MAX, NodeId(0)).count(), 4);
    assert_eq!(placement.runs(0, NodeId(0)).count(), 0);
    assert_eq!(placement.node_of(5, 0, NodeId(0)), Some(NodeId(0)));
    assert_eq!(placement.node_of(5, 4, NodeId(u16::MAX)), Some(NodeId(3)));
}
