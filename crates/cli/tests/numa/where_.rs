//! `gondwana where` against the kernel's own `numa_maps`.

use crate::guest::run;
use crate::witness::beside_pages;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes on each node.
type Bytes = BTreeMap<String, u64>;

/// The policy and the bytes on each node of each mapping that has pages, by start address, of `numa_maps`.
fn kernel_says(numa_maps: &str) -> BTreeMap<u64, (String, Bytes)> {
    let mapping = |line: &str| {
        let mut words = line.split(' ');
        let start = u64::from_str_radix(words.next()?, 16).unwrap();
        let policy = words.next()?.to_owned();
        let on_node = |word: &str| {
            let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
            Some((node.to_owned(), pages.parse::<u64>().unwrap() * 4096))
        };
        let bytes: Bytes = words.filter_map(on_node).collect();
        (!bytes.is_empty()).then_some((start, (policy, bytes)))
    };
    numa_maps.lines().filter_map(mapping).collect()
}

/// The same of the answer of the command.
fn command_says(answer: &Value) -> BTreeMap<u64, (String, Bytes)> {
    let mapping = |mapping: &Value| {
        let bytes = mapping["bytes"].as_object().unwrap();
        let bytes = bytes.iter().map(|(node, bytes)| (node.clone(), bytes.as_u64().unwrap())).collect();
        let policy = mapping["policy"].as_str().unwrap().to_owned();
        (mapping["addresses"]["start"].as_u64().unwrap(), (policy, bytes))
    };
    answer["mappings"].as_array().unwrap().iter().map(mapping).collect()
}

#[test]
fn every_mapping_has_the_pages_that_the_kernel_counts() {
    // Asking changes nothing in a process that waits.
    let script =
        beside_pages([9, 300, 0, 40], "gondwana where --json $process; cat /proc/$process/numa_maps");
    let Some(ran) = run(&script) else { return };
    let text = ran.succeeded();
    let (json, numa_maps) = text.split_at(text.find("\n}\n").unwrap() + 3);
    let (command, kernel) = (command_says(&serde_json::from_str(json).unwrap()), kernel_says(numa_maps));
    assert_eq!(command, kernel);
    let held = kernel.values().filter(|(policy, _)| policy.starts_with("bind:"));
    let held: Vec<_> = held.flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(held, [("0".into(), 9 * 4096), ("1".into(), 300 * 4096), ("3".into(), 40 * 4096)]);
}

#[test]
fn a_range_is_counted_page_by_page() {
    let script = beside_pages([5, 1, 7, 600], "gondwana where --json $process $addresses");
    let Some(ran) = run(&script) else { return };
    let answer: Value = serde_json::from_str(&ran.succeeded()).unwrap();
    assert_eq!(answer["pages"], json!({ "0": 5, "1": 1, "2": 7, "3": 600 }));
    assert_eq!(answer["absent"], 0);
}

#[test]
fn the_strip_shows_the_nodes_in_the_order_of_the_pages() {
    let script = beside_pages([3, 2, 0, 4], "gondwana where $process $addresses | tail -1");
    let Some(ran) = run(&script) else { return };
    assert_eq!(ran.succeeded(), "000113333\n");
}

#[test]
fn a_user_sees_the_pages_of_own_processes_only() {
    let Some(ran) = run(&beside_pages([1, 1, 1, 1], "su user -c \"gondwana where $process\"")) else {
        return;
    };
    assert_eq!((ran.status, ran.output.as_str()), (125, ""));
    assert!(ran.errors.starts_with("gondwana: the kernel does not show the pages of process "), "{ran}");
    assert_eq!(ran.errors.lines().count(), 1, "{ran}");

    let own = beside_pages([0, 6, 0, 1], "gondwana where --json $process $addresses");
    let ran =
        run(&format!("cat > own <<'END'\ncd /tmp/user\n{own}\nEND\nmkdir -m 777 user; su user -c 'sh own'"))
            .unwrap();
    let answer: Value = serde_json::from_str(&ran.succeeded()).unwrap();
    assert_eq!(answer["pages"], json!({ "1": 6, "3": 1 }));
}
