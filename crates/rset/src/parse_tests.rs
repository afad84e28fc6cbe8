use super::*;
use gondwana_topology::Bytes;

/// Four nodes of four processors, and node 4 with memory only.
fn machine() -> Machine {
    let mut machine = Machine::uniform(5, 4, Bytes(1 << 30));
    machine.nodes[4].processors = ProcessorSet::EMPTY;
    machine
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    for (name, text) in [("web", "node:0-1"), ("batch", "node:2"), ("elsewhere.old", "proc:0")] {
        let set = RSet::parse(text, &machine(), &registry).unwrap();
        registry.add(name, crate::Entry::new(set)).unwrap();
    }
    registry
}

fn parsed(text: &str) -> String {
    RSet::parse(text, &machine(), &registry()).unwrap().to_string()
}

#[test]
fn sets_are_what_the_text_says() {
    for (text, set) in [
        ("node:0-1", "proc:0-7|mem:0-1"),
        ("cpu:0-7&node:0", "proc:0-3|mem:0"),
        ("cpu:3-4", "proc:3-4|mem:0-1"),
        ("web|batch", "proc:0-11|mem:0-2"),
        ("all", "proc:0-15|mem:0-4"),
        ("none", "none"),
        ("node:4", "mem:4"),
        ("mem:1,3", "mem:1,3"),
        ("proc:0,2-3", "proc:0,2-3"),
        ("cpu:0-3-mem:0|mem:4", "proc:0-3|mem:4"),
        ("all-node:0-node:1", "proc:8-15|mem:2-4"),
        ("all - (node:0 - proc:0)", "proc:0,4-15|mem:1-4"),
        ("node:0|node:1&node:1", "proc:0-7|mem:0-1"),
        (" ( web ) & elsewhere.old\t", "proc:0"),
        ("web-web", "none"),
    ] {
        assert_eq!(parsed(text), set, "{text}");
    }
}

#[test]
fn errors_point_at_the_character() {
    for (text, column, message) in [
        ("", 1, "a set is missing, such as node:0, cpu:0-3, a name or all"),
        ("node:0|", 8, "a set is missing, such as node:0, cpu:0-3, a name or all"),
        ("node:0 & & web", 10, "a set is missing, such as node:0, cpu:0-3, a name or all"),
        ("web batch", 5, "one of | (union), & (intersection) or - (difference) is missing"),
        ("cpu:0-3x", 8, "one of | (union), & (intersection) or - (difference) is missing"),
        ("web|(batch", 5, "this parenthesis is never closed"),
        ("(web batch)", 6, "one of |, &, - or ) is missing"),
        ("web)", 4, "this parenthesis closes none"),
        ("cpus:0", 1, "'cpus:' is none of node:, cpu:, proc: and mem:"),
        ("web|webb", 5, "there is no set named 'webb'"),
        ("node:0-7", 6, "the machine has no node 5-7 (it has 0-4)"),
        ("web & cpu:16", 11, "the machine has no processor 16 (it has 0-15)"),
        ("mem:9", 5, "the machine has no memory on node 9 (it has 0-4)"),
        ("node:", 6, "a node number is missing"),
        ("cpu:0,,1", 7, "a processor number is missing"),
        ("cpu:3-1", 5, "the range 3-1 ends before it begins"),
        ("cpu:70000", 5, "processor 70000 is beyond the last possible one, 4095"),
        ("é:0", 1, "'é:' is none of node:, cpu:, proc: and mem:"),
        ("web|§", 5, "a set is missing, such as node:0, cpu:0-3, a name or all"),
    ] {
        let error = RSet::parse(text, &machine(), &registry()).unwrap_err();
        assert_eq!((error.column(), error.message()), (column, message), "{text}");
    }
}

#[test]
fn parentheses_have_a_limit_instead_of_the_stack() {
    let nested = |depth| format!("{}all{}", "(".repeat(depth), ")".repeat(depth));
    assert!(RSet::parse(&nested(DEEPEST), &machine(), &registry()).is_ok());
    let error = RSet::parse(&nested(100_000), &machine(), &registry()).unwrap_err();
    assert_eq!((error.column(), error.message()), (DEEPEST + 1, "parentheses are too deep"));
}

#[test]
fn a_named_set_must_be_in_the_machine() {
    let small = Machine::uniform(2, 4, Bytes(1 << 30));
    let error = RSet::parse("all|batch", &small, &registry()).unwrap_err();
    assert_eq!(error.message(), "'batch' has proc:8-11|mem:2, which the machine lacks");
    assert_eq!(error.column(), 5);
}
