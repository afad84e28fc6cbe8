use super::*;
use gondwana_topology::Bytes;

/// Nodes 0 to 2 with 4, 2 and 4 processors; processors 0 and 1 share a core, 2 and 3 too.
fn machine() -> Machine {
    let mut machine = Machine::uniform(3, 4, Bytes(1 << 30));
    machine.nodes[1].processors = "4-5".parse().unwrap();
    machine.cores = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
    machine
}

fn parse(text: &str) -> Result<ThreadPolicy, TextError> {
    ThreadPolicy::parse(text, &machine(), &Registry::default())
}

/// The processors of the first threads.
fn processors(policy: &str, rset: &str, threads: usize) -> Vec<u16> {
    let rset = RSet::parse(rset, &machine(), &Registry::default()).unwrap();
    let plan = ThreadPlan::new(parse(policy).unwrap(), &rset, &machine()).unwrap();
    let places: Vec<ThreadPlace> = (0..threads).map(|thread| plan.place_of(thread)).collect();
    assert!(places.iter().all(|place| machine().node_of(place.processor) == Some(place.node)));
    places.iter().map(|place| place.processor.0).collect()
}

#[test]
fn fill_uses_up_a_node_before_the_next_one() {
    assert_eq!(processors("fill", "all", 12), [0, 2, 1, 3, 4, 5, 8, 9, 10, 11, 0, 2]);
    assert_eq!(processors("fill", "cpu:1,3,9", 4), [1, 3, 9, 1]);
}

#[test]
fn round_robin_goes_on_to_the_next_node_each_time() {
    assert_eq!(processors("round-robin", "all", 8), [0, 4, 8, 2, 5, 9, 1, 4]);
    assert_eq!(processors("round-robin", "node:0|node:2", 4), [0, 8, 2, 9]);
}

#[test]
fn explicit_sets_take_turns() {
    assert_eq!(processors("node:2;proc:0-1", "all", 5), [8, 0, 9, 1, 10]);
    assert_eq!(processors("cpu:3", "node:0", 2), [3, 3]);
}

#[test]
fn policies_come_back_as_they_were_written() {
    for text in ["fill", "round-robin", "proc:0-1|mem:0", "proc:0;proc:4"] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    for (text, column, message) in [
        ("filled", 1, "there is no set named 'filled'"),
        ("node:0; cpu:12", 13, "the machine has no processor 12 (it has 0-5,8-11)"),
        ("node:0;mem:1", 8, "this set has no processors"),
        ("node:0;", 8, "a set is missing, such as node:0, cpu:0-3, a name or all"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.column(), error.message()), (column, message), "{text}");
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let part = RSet::of_nodes(&machine(), &"0".parse().unwrap());
    let refused = |policy, rset: &RSet| ThreadPlan::new(policy, rset, &machine()).unwrap_err().to_string();
    assert_eq!(
        refused(parse("cpu:3-4").unwrap(), &part),
        "proc:4 is asked for, which isn't in the resource set proc:0-3|mem:0"
    );
    let memory = RSet::new(ProcessorSet::EMPTY, "0".parse().unwrap());
    assert_eq!(refused(ThreadPolicy::Fill, &memory), "the resource set mem:0 has no processors");
    assert_eq!(
        refused(ThreadPolicy::Explicit(vec![memory]), &part),
        "the resource set mem:0 has no processors"
    );
    assert_eq!(
        refused(ThreadPolicy::Explicit(Vec::new()), &part),
        "no resource set is named for threads to run in"
    );
    let large = RSet::new("6".parse().unwrap(), "3".parse().unwrap());
    assert_eq!(refused(ThreadPolicy::Fill, &large), "the machine doesn't have proc:6|mem:3");
}
