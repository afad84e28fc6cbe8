use super::*;
use crate::memory::case::Kernel;

/// Four nodes: two with 3 processors, one with memory only, one with processors only. Two caches in front of node 0.
fn machine() -> Machine {
    let text = r#"
        cores = ["0-1", "2"]
        [[node]]
        id = 0
        processors = "0-2"
        memory.total = "1GiB"
        [[node]]
        id = 1
        processors = "3-5"
        memory.total = "2GiB"
        [[node]]
        id = 2
        memory.total = "1GiB"
        [[node]]
        id = 3
        processors = "6"
        [[cache]]
        level = 3
        size = "12MiB"
        processors = "0-1"
        [[cache]]
        level = 3
        size = "8MiB"
        processors = "2"
        [[cache]]
        level = 2
        size = "900MiB"
        processors = "3-5"
    "#;
    Machine::from_toml(text).unwrap()
}

fn options(nodes: Option<&str>, threads: Option<u16>, size: Option<&str>) -> MemoryOptions {
    let size = size.map(|size| size.parse().unwrap());
    MemoryOptions { cluster: false, nodes: nodes.map(str::to_owned), size, threads, json: None, svg: None }
}

fn cluster(nodes: Option<&str>, threads: Option<u16>, size: Option<&str>) -> MemoryOptions {
    MemoryOptions { cluster: true, ..options(nodes, threads, size) }
}

/// The pairs of node and memory that one thread reads, and the greatest number of threads of each node.
fn pairs(setup: &MemorySetup) -> (Vec<(u16, u16)>, Vec<usize>) {
    let reads: Vec<MemoryCase> =
        setup.cases().into_iter().filter(|case| case.kernel == Kernel::Read).collect();
    let single = reads.iter().filter(|case| case.threads == 1).map(|case| (case.node.0, case.memory.0));
    (single.collect(), setup.threads.iter().map(|(_, threads)| *threads).collect())
}

fn refused(options: &MemoryOptions) -> String {
    MemorySetup::new(options, machine()).unwrap_err().message
}

#[test]
fn every_node_with_processors_is_paired_with_every_node_with_memory() {
    let setup = MemorySetup::new(&options(None, None, None), machine()).unwrap();
    let expected = [0, 1, 3].into_iter().flat_map(|node| [0, 1, 2].map(|memory| (node, memory))).collect();
    assert_eq!(pairs(&setup), (expected, vec![3, 3, 1]));
    let setup = MemorySetup::new(&options(Some("1-2"), Some(2), None), machine()).unwrap();
    assert_eq!(pairs(&setup), (vec![(1, 1), (1, 2)], vec![2]));
}

#[test]
fn limits_of_this_process_are_respected() {
    let mut machine = machine();
    machine.limits.processors = Some("0,6".parse().unwrap());
    machine.limits.nodes = Some("1".parse().unwrap());
    let setup = MemorySetup::new(&options(None, None, None), machine).unwrap();
    assert_eq!(pairs(&setup), (vec![(0, 1), (3, 1)], vec![1, 1]));
}

#[test]
fn threads_have_cores_for_themselves_as_long_as_there_are_any() {
    let setup = MemorySetup::new(&options(None, None, None), machine()).unwrap();
    assert_eq!(setup.processors(NodeId(0), 3).unwrap(), [0, 2, 1].map(ProcessorId));
}

#[test]
fn nodes_of_a_run_share_the_processors() {
    let setup = MemorySetup::new(&cluster(None, None, None), machine()).unwrap();
    assert_eq!(pairs(&setup), (vec![(0, 0), (0, 1), (1, 0), (1, 1)], vec![3, 3]));
    let setup = MemorySetup::new(&cluster(Some("8"), None, None), machine()).unwrap();
    assert_eq!(pairs(&setup).1, [1; 8]);
    let setup = MemorySetup::new(&cluster(Some("2"), Some(9), None), machine()).unwrap();
    assert_eq!(pairs(&setup).1, [9; 2]);
}

#[test]
fn the_working_set_is_larger_than_the_caches_and_smaller_than_the_memory() {
    let size =
        |options: &MemoryOptions, machine| MemorySetup::new(options, machine).unwrap().size.to_string();
    assert_eq!(size(&options(None, None, None), machine()), "80MiB");
    assert_eq!(size(&options(Some("1"), None, None), machine()), "64MiB");
    assert_eq!(size(&options(None, None, Some("123KiB")), machine()), "123KiB");
    let mut small = machine();
    small.nodes[2].memory.total = Bytes(64 << 20);
    assert_eq!(size(&options(None, None, None), small), "16MiB");
}

#[test]
fn each_thread_has_whole_pages() {
    let setup = MemorySetup::new(&options(None, None, Some("123KiB")), machine()).unwrap();
    assert_eq!([1, 2, 3].map(|threads| setup.pages_each(threads)), [30, 15, 10]);
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_sentence() {
    for (options, sentence) in [
        (options(Some("7"), None, None), "--nodes: this computer has no node 7 (it has 0-3)"),
        (options(Some("0-"), None, None), "--nodes: "),
        (options(Some("2"), None, None), "--nodes: this process may use no processors of node 2"),
        (options(Some("3"), None, None), "--nodes: this process may use no memory of node 3"),
        (
            options(None, Some(4), None),
            "--threads: each thread has a processor for itself, and no node has more than 3",
        ),
        (options(None, None, Some("8KiB")), "--size: 8KiB is too little: a page for each thread takes 12KiB"),
        (options(None, None, Some("600MiB")), "--size: 600MiB is too much: 512MiB fit"),
        (options(None, None, Some("9999999TiB")), "--size: 9999999TiB is too much"),
        (cluster(Some("1"), None, None), "--nodes: '1' is no number of nodes from 2 to 256"),
        (cluster(Some("0-1"), None, None), "--nodes: '0-1' is no number of nodes from 2 to 256"),
        (cluster(None, None, Some("1025MiB")), "--size: 1025MiB is too much: 1GiB fit"),
    ] {
        let message = refused(&options);
        assert!(message.starts_with(sentence), "{message}");
    }
}
