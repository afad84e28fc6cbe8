//! Runs of nodes as processes of the guest. Its kernel may be older than the one that the other tests run on, and lack
//! what the runtime prefers to use.

use crate::guest::run;

#[test]
fn doctor_says_what_the_kernel_lacks_and_that_runs_work() {
    let Some(ran) = run("gondwana doctor --json") else { return };
    let report: serde_json::Value = serde_json::from_str(&ran.succeeded()).unwrap();
    assert_eq!(report["runs_work"], true, "{report:#}");
    let finding = |name: &str| {
        let findings = report["findings"].as_array().unwrap();
        findings
            .iter()
            .find(|finding| finding["name"] == name)
            .unwrap_or_else(|| panic!("{name}: {report:#}"))
    };
    assert_eq!(finding("processors")["found"], "4");
    // Debian 12 has Linux 6.1. Linux 6.4 brought the one mode, 6.7 the other call.
    if run("uname -r").unwrap().output.starts_with("6.1.") {
        let userfaultfd = finding("userfaultfd");
        assert_eq!(userfaultfd["verdict"], "warn");
        assert!(
            userfaultfd["found"]
                .as_str()
                .unwrap()
                .starts_with("userfaultfd lacks CONTINUE_MODE_WP: mprotect is")
        );
        assert_eq!(finding("PAGEMAP_SCAN")["verdict"], "warn");
    }
}

/// Compares the output of a program natively and on nodes.
fn equals_native(user: &str, nodes: u32, options: &str, program: &str) {
    let script = |command: &str| format!("su {user} -c 'cd /tmp && {command}'");
    let Some(native) = run(&script(program)) else { return };
    let native = native.succeeded();
    let ran = run(&script(&format!("gondwana run -n {nodes} {options} -- {program}"))).unwrap();
    assert_eq!(ran.succeeded(), native);
}

#[test]
fn a_race_free_program_prints_on_nodes_what_it_prints_by_itself() {
    equals_native("root", 2, "--fabric shm", "/programs/litmus/barrier_phases");
}

#[test]
fn a_program_with_atomics_prints_on_nodes_what_it_prints_by_itself() {
    equals_native("root", 2, "--fabric tcp", "/programs/litmus/atomic_counter");
}

#[test]
fn a_user_without_privileges_can_run_nodes() {
    equals_native("user", 3, "", "/programs/conform/globals");
}

#[test]
fn native_runs_need_no_kernel_features() {
    equals_native("user", 1, "", "/programs/litmus/queue");
}
