//! `gondwana topo` against the kernel's data, and the guest's specification.

use crate::guest::{DISTANCES, PROCESSORS, run};
use crate::witness::in_cpuset;
use serde_json::{Value, json};

fn machine(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn topo_knows_processors_distances_and_memory_of_each_node() {
    let Some(ran) = run("gondwana topo --json") else { return };
    let machine = machine(&ran.succeeded());
    let kernel = run("cat /sys/devices/system/node/node*/meminfo | awk '/MemTotal/ { print $4 }'").unwrap();
    let kibibytes: Vec<u64> = kernel.succeeded().lines().map(|line| line.parse().unwrap()).collect();
    let nodes = machine["node"].as_array().unwrap();
    assert_eq!(nodes.len(), 4);
    for (number, node) in nodes.iter().enumerate() {
        let processors = PROCESSORS[number].iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        // A node without processors has no such field, or an empty one.
        assert_eq!(node["processors"].as_str().unwrap_or(""), processors, "{node}");
        assert_eq!(node["id"], number);
        assert_eq!(node["distances"], json!(DISTANCES[number]));
        assert_eq!(node["memory"]["total"], kibibytes[number] * 1024);
    }
}

#[test]
fn topo_shows_the_node_with_memory_only() {
    let Some(ran) = run("su user -c 'gondwana topo | grep -A4 ^node'") else { return };
    let text = ran.succeeded();
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let starts = ["0 0,2", "1 1", "2 3", "3 none"];
    let ends = DISTANCES.map(|row| row.map(|distance| distance.to_string()).join(" "));
    for ((words, start), end) in words[1..].iter().zip(starts).zip(ends) {
        let line = words.join(" ");
        assert!(line.starts_with(&format!("{start} ")) && line.ends_with(&format!("iB {end}")), "{text}");
    }
}

#[test]
fn topo_shows_what_a_control_group_allows() {
    let script = in_cpuset("1,3", "2-3", "gondwana topo --json; gondwana topo | tail -1");
    let Some(ran) = run(&script) else { return };
    let text = ran.succeeded();
    let (json, sentence) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(machine(json)["limits"], json!({ "processors": "1,3", "nodes": "2-3" }));
    assert_eq!(sentence, "this process may use processors 1,3; memory of nodes 2-3");
}

#[test]
fn topo_counts_the_huge_pages_of_each_node() {
    let script = "cd /sys/devices/system/node/node1/hugepages/hugepages-2048kB
        echo 3 > nr_hugepages
        gondwana topo --json
        echo 0 > nr_hugepages";
    let Some(ran) = run(script) else { return };
    let machine = machine(&ran.succeeded());
    let huge = |node: usize| {
        let sizes = machine["node"][node]["memory"]["huge"].as_array().cloned().unwrap_or_default();
        let size = sizes.iter().find(|size| size["size"] == 2 << 20);
        size.map_or((0, 0), |size| (size["total"].as_u64().unwrap(), size["free"].as_u64().unwrap()))
    };
    assert_eq!([0, 1, 2, 3].map(huge), [(0, 0), (3, 3), (0, 0), (0, 0)], "{machine:#}");
}
