//! The unit tests of `crates/host`, on a computer with several nodes.

use crate::guest::run;
use crate::witness::in_cpuset;

/// Runs them by a script in which they are started by this command, one after the other: some count all pages of their
/// process.
fn pass(script: impl Fn(&str) -> String) {
    let Some(ran) = run(&script("/tests/host --test-threads 1")) else { return };
    let text = ran.to_string();
    assert!(ran.status == 0 && text.contains("\ntest result: ok. "), "{text}");
}

#[test]
fn unit_tests_pass_on_every_node() {
    for processor in [0, 1, 3] {
        pass(|tests| format!("taskset {} {tests}", 1 << processor));
    }
}

#[test]
fn unit_tests_pass_where_a_control_group_allows_the_far_nodes_only() {
    pass(|tests| in_cpuset("3", "2-3", tests));
}

#[test]
fn unit_tests_pass_without_privileges() {
    pass(|tests| format!("su user -c '{tests}'"));
}
