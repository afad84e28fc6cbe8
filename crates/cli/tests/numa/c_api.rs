//! The functions for C on several NUMA nodes: the programs of `tests/capi` compare all results with the kernel's.

use crate::guest::run;
use crate::witness::in_cpuset;

/// The output of a script, if there is a guest.
fn prints(script: &str, expected: &str) {
    let Some(ran) = run(script) else { return };
    assert_eq!(ran.succeeded(), expected, "{script}");
}

#[test]
fn every_policy_has_exact_counts_from_each_node() {
    for processor in [0, 1, 3] {
        prints(&format!("taskset {} /tests/capi/policies", 1 << processor), "4 nodes\n");
    }
}

#[test]
fn every_policy_keeps_to_the_nodes_of_a_cpuset() {
    prints(&in_cpuset("3", "2-3", "/tests/capi/policies"), "2 nodes\n");
}

#[test]
fn every_policy_needs_no_privileges() {
    prints("su user -c /tests/capi/policies", "4 nodes\n");
}

#[test]
fn what_a_cpuset_forbids_is_said() {
    let Some(ran) = run(&in_cpuset("3", "2-3", "/tests/capi/policies forbidden")) else { return };
    let text = ran.succeeded();
    let [remark, counted] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    for part in ["node 0 has 0 of 26 pages asked for", "; node 1 has 0 of 25 pages asked for"] {
        assert!(remark.contains(part), "{remark}");
    }
    assert_eq!(counted, "51 pages misplaced: 51 of 101 pages are on other nodes than asked for");
}

#[test]
fn threads_are_bound_to_every_node_with_processors() {
    prints("/tests/capi/binding", "3 of 4 nodes\n");
    prints("su user -c /tests/capi/binding", "3 of 4 nodes\n");
}

#[test]
fn cpu_groups_are_the_nodes() {
    prints("/tests/capi/groups", "4 groups\n");
    prints("su user -c /tests/capi/groups", "4 groups\n");
}

#[test]
fn sets_and_bad_input_do_not_depend_on_the_machine() {
    prints("XDG_STATE_HOME=/tmp/c-api /tests/capi/sets && /tests/capi/bad", "sets\nrefused\n");
}

#[test]
fn examples_show_the_nodes() {
    prints(
        "/examples/striped",
        "001122330011223300112233\n12288 numbers, 0 pages elsewhere than asked for\n",
    );
    let worker = |node| format!("node {node}: ran on {node}, memory on {node}, sum 13.053867\n");
    prints("/examples/workers", &[0, 1, 2].map(worker).concat());
    prints(
        "/examples/groups",
        "group 0: 2 processors, memory, the process is on 0\n\
         group 1: 1 processors, memory, the process is on 1\n\
         group 2: 1 processors, memory, the process is on 2\n\
         group 3: 0 processors, memory\n",
    );
}
