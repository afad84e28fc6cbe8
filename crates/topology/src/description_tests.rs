use super::*;
use crate::{Bytes, Cache, HugePages, Limits, Memory, NodeId, ProcessorId, View};

const FOUR: &str = r#"
name = "example"
page_size = "4KiB"
cores = ["0-1", "2-3"]

[[node]]
id = 0
processors = "0-3"
distances = [10, 21, 28]
memory = { total = "16GiB", free = 1048576, huge = [{ size = "2MiB", total = 8, free = 3 }] }

[[node]]
id = 2
processors = "4-7"
distances = [21, 10, 28]
memory.total = "16GiB"

[[node]]
id = 3
distances = [28, 28, 10]
memory.total = "64GiB"

[[cache]]
level = 3
size = "32MiB"
line = 64
ways = 16
processors = "0-3"
"#;

#[test]
fn a_description_says_what_the_machine_is() {
    let machine = Machine::from_toml(FOUR).unwrap();
    assert_eq!(
        (machine.name.as_str(), machine.view, machine.page_size),
        ("example", View::Described, Bytes(4096))
    );
    assert_eq!(machine.node_ids().to_string(), "0,2-3");
    assert_eq!(machine.processors().to_string(), "0-7");
    assert_eq!(machine.distance(NodeId(2), NodeId(3)), Some(28));
    assert_eq!(machine.distance(NodeId(2), NodeId(1)), None);
    assert_eq!(machine.node_of(ProcessorId(5)), Some(NodeId(2)));
    assert_eq!(machine.nearest(NodeId(3), &machine.node_ids()), Some(NodeId(3)));
    assert!(machine.node(NodeId(3)).unwrap().processors.is_empty());
    let huge = HugePages { size: Bytes(2 << 20), total: 8, free: 3 };
    let memory = Memory { total: Bytes(16 << 30), free: Some(Bytes(1 << 20)), huge: vec![huge] };
    assert_eq!(machine.nodes[0].memory, memory);
}

#[test]
fn descriptions_come_back_as_they_were_written() {
    let mut machine = Machine::from_toml(FOUR).unwrap();
    machine.limits = Limits {
        processors: Some("0-1".parse().unwrap()),
        nodes: Some("0".parse().unwrap()),
        memory: Some(Bytes(1 << 30)),
        processor_time: Some(1.5),
    };
    machine.packages = vec!["0-7".parse().unwrap()];
    machine.caches.push(Cache {
        level: 1,
        size: Bytes(48 << 10),
        processors: "4".parse().unwrap(),
        ..Cache::default()
    });
    assert_eq!(Machine::from_toml(&machine.to_toml()).unwrap(), machine);
    let json = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    assert_eq!(machine.allowed_processors().to_string(), "0-1");
    assert_eq!(machine.allowed_memory_nodes().to_string(), "0");
}

/// The description with a text in place of another.
fn changed(old: &str, new: &str) -> String {
    assert!(FOUR.contains(old), "{old}");
    Machine::from_toml(&FOUR.replacen(old, new, 1)).unwrap_err().to_string()
}

#[test]
fn errors_name_the_line_and_the_field() {
    for (old, new, error) in [
        ("\"4-7\"", "\"4-x\"", "line 14: node[1].processors: '-' has no place in a list such as 0-3,8"),
        ("\"4-7\"", "\"3-7\"", "line 14: node[1].processors: another node has processors 3 too"),
        (
            "\"4-7\"",
            "\"4-4096\"",
            "line 14: node[1].processors: processor 4096 is beyond the last possible one, 4095",
        ),
        ("id = 2", "id = 300", "line 13: node[1].id: node 300 is beyond the last possible one, 255"),
        ("id = 2", "id = 0", "line 13: node[1].id: node 0 is not in ascending order"),
        ("[21, 10, 28]", "[21, 10]", "line 15: node[1].distances: 2 distances for 3 nodes"),
        ("[21, 10, 28]", "[9, 10, 28]", "line 15: node[1].distances: node 0 is nearer than the node itself"),
        ("\"4KiB\"", "4095", "line 3: page_size: 4095 is no power of two"),
        (
            "\"4KiB\"",
            "\"4KB\"",
            "line 3: page_size: '4KB' is no amount of memory such as 4096, 512KiB, 64M or 1TiB",
        ),
        ("free = 1048576", "free = \"17GiB\"", "line 10: node[0].memory: more is free than there is"),
        ("free = 3 }", "free = 9 }", "line 10: node[0].memory: more pages of 2MiB are free than there are"),
        ("\"64GiB\"", "0", "line 21: node[2].memory: node 3 has neither processors nor memory"),
        ("level = 3", "level = 0", "line 24: cache[0].level: levels begin with 1, next to the processor"),
        ("\"32MiB\"", "0", "line 25: cache[0].size: a cache has a size"),
        ("\"2-3\"", "\"1-2\"", "line 4: cores: processors 1 are in two of them"),
        ("\"2-3\"", "\"8\"", "line 4: cores: processors 8 are in no node"),
        ("\"2-3\"", "\"\"", "line 4: cores: no processor is named"),
        ("ways = 16", "size = 16", "line 27: duplicate key, at 'size'"),
        ("level = 3\n", "", "line 23: cache[0]: missing field `level`"),
    ] {
        assert_eq!(changed(old, new), error, "{new}");
    }
    let unknown = changed("ways", "way");
    assert!(unknown.starts_with("line 27: cache[0].way: unknown field `way`, expected"), "{unknown}");
    let syntax = changed("id = 2", "id = ");
    assert!(syntax.starts_with("line 13: "), "{syntax}");
}

#[test]
fn a_machine_has_nodes_and_processors() {
    assert_eq!(Machine::from_toml("").unwrap_err().to_string(), "line 1: missing field `node`");
    assert_eq!(
        Machine::from_toml("node = []").unwrap_err().to_string(),
        "line 1: node: a machine has one node at least"
    );
    let error = Machine::from_toml("[[node]]\nid = 0\nmemory.total = 4096").unwrap_err();
    assert_eq!(error.to_string(), "line 1: node[0].processors: no node of the machine has a processor");
}

proptest::proptest! {
    /// Whatever a slip of the hand leaves of a description, it is a machine or an error with a line of the text.
    #[test]
    fn a_part_is_a_machine_or_an_error_with_a_line(from in 0..FOUR.len(), length in 0..80usize, instead in ".{0,3}") {
        let text = format!("{}{instead}{}", &FOUR[..from], FOUR.get(from + length..).unwrap_or(""));
        if let Err(error) = Machine::from_toml(&text) {
            let line = error.line.unwrap();
            proptest::prop_assert!((1..=text.lines().count() + 1).contains(&line), "{error}");
            proptest::prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
