//! The program that reports the kernel's placement (`tests/guest/witness.c`), and tests of it.

use crate::guest::run;

/// A script that runs a command in a cpuset with these processors and nodes.
pub(crate) fn in_cpuset(processors: &str, nodes: &str, command: &str) -> String {
    format!(
        "cd /sys/fs/cgroup && echo +cpuset > cgroup.subtree_control && mkdir part && cd part &&
        echo {processors} > cpuset.cpus && echo {nodes} > cpuset.mems || exit
        (echo 0 > cgroup.procs; cd /tmp; {command})
        status=$?
        rmdir /sys/fs/cgroup/part
        exit $status"
    )
}

/// A script that runs the witness with its pages held, then a command that finds its process as `$process` and their
/// addresses as `$addresses`.
pub(crate) fn beside_pages(pages: [usize; 4], command: &str) -> String {
    let pages = pages.map(|count| count.to_string()).join(" ");
    format!(
        "rm -f held && mkfifo held || exit
        witness hold {pages} > held &
        read process addresses < held
        ({command})
        status=$?
        kill $process
        exit $status"
    )
}

#[test]
fn a_thread_may_run_where_its_mask_says() {
    let Some(ran) = run("taskset 2 witness threads 2; taskset 5 witness threads 3") else { return };
    let on_node_1 = "processors 1 nodes 0-3 pages 111111\n".repeat(2);
    let on_node_0 = "processors 0,2 nodes 0-3 pages 000000\n".repeat(3);
    assert_eq!(ran.succeeded(), on_node_1 + &on_node_0);
}

#[test]
fn a_control_group_restricts_threads_and_pages() {
    let command = "witness threads 1 && witness pages mmap 700";
    let Some(ran) = run(&in_cpuset("1,3", "3", command)) else { return };
    assert_eq!(ran.succeeded(), format!("processors 1,3 nodes 3 pages 333333\n{}\n", "3".repeat(700)));
}

#[test]
fn pages_are_first_where_the_thread_runs() {
    let Some(ran) = run("taskset 2 witness pages mmap 600; taskset 8 witness pages malloc 5") else { return };
    assert_eq!(ran.succeeded(), format!("{}\n22222\n", "1".repeat(600)));
}

#[test]
fn the_kernel_counts_the_pages_that_are_held() {
    let Some(ran) = run(&beside_pages([5, 0, 7, 600], "grep ' bind:' /proc/$process/numa_maps")) else {
        return;
    };
    let text = ran.succeeded();
    // Each policy makes a mapping of its own.
    let expected = [" bind:0 anon=5 ", " bind:2 anon=7 ", " bind:3 anon=600 "];
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() == 3 && lines.iter().zip(expected).all(|(line, part)| line.contains(part)), "{text}");
}
