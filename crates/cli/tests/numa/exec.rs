//! `gondwana exec`: requested against actual placement of threads and pages.

use crate::guest::run;
use crate::witness::in_cpuset;

/// The node of each page that a program touches under these options, of memory from `malloc` and from `mmap`; and the
/// command's messages.
fn pages(options: &str, count: usize) -> Option<([String; 2], String)> {
    let ran = run(&format!(
        "gondwana exec {options} -- witness pages malloc {count} && gondwana exec {options} -- witness pages mmap {count}"
    ))?;
    let errors = ran.errors.clone();
    let text = ran.succeeded();
    let (from_malloc, mapped) = text.trim_end().split_once('\n').unwrap();
    Some(([from_malloc.to_owned(), mapped.to_owned()], errors))
}

/// All pages of a program are on this node, and there is no message.
fn all_on(node: &str, options: &str) {
    let Some((found, said)) = pages(options, 300) else { return };
    assert_eq!(said, "", "{options}");
    for found in found {
        assert!(found == node.repeat(300), "{options}: {found}");
    }
}

#[test]
fn local_and_floating_memory_is_where_the_thread_runs() {
    for (processor, node) in [("0", "0"), ("1", "1"), ("2", "0"), ("3", "2")] {
        all_on(node, &format!("--rset 'proc:{processor}|mem:0-3' --memory local"));
        all_on(node, &format!("--rset 'proc:{processor}|mem:0-3'"));
    }
}

#[test]
fn local_memory_of_a_set_without_the_own_node_is_the_nearest_in_it() {
    // By the distances: from node 2 to node 1 it is 14, to node 3 16 and to node 0 20.
    all_on("1", "--rset 'proc:3|mem:0-1,3' --memory local");
    all_on("3", "--rset 'proc:3|mem:0,3' --memory local");
}

#[test]
fn remote_memory_is_on_the_next_node_of_the_set() {
    all_on("1", "--rset 'proc:0|mem:0-3' --memory remote");
    all_on("2", "--rset 'proc:1|mem:0-3' --memory remote");
    all_on("3", "--rset 'proc:3|mem:0-3' --memory remote");
    all_on("0", "--rset 'proc:3|mem:0,2' --memory remote");
}

#[test]
fn memory_is_on_the_node_that_is_named_even_if_it_has_no_processors() {
    all_on("2", "--memory node:2");
    all_on("3", "--memory node:3");
    all_on("3", "--rset 'proc:0-2|mem:3'");
    all_on("1", "--rset node:1");
}

/// A program has the same number of pages on each of the nodes, in turn.
fn in_turn(nodes: &str, options: &str, count: usize) {
    let Some((found, said)) = pages(options, count) else { return };
    assert_eq!(said, "");
    for found in found {
        // The kernel begins with any node.
        let start = nodes.find(&found[..1]).unwrap_or_else(|| panic!("{found}"));
        let turns = nodes[start..].to_owned() + &nodes[..start];
        assert!(found == turns.repeat(count / nodes.len()), "{options}: {found}");
    }
}

#[test]
fn striped_memory_goes_over_the_nodes_page_by_page() {
    in_turn("0123", "--memory striped", 240);
    in_turn("13", "--rset 'proc:0|mem:1,3' --memory striped", 240);
}

#[test]
fn huge_pages_do_not_spoil_stripes() {
    in_turn("0123", "--memory striped", 8 * 512);
}

#[test]
fn what_only_regions_can_have_is_said() {
    let Some((found, said)) = pages("--rset 'proc:0|mem:0-1' --memory striped:3", 60) else { return };
    let counts = ["0", "1"].map(|node| found[1].matches(node).count());
    assert_eq!((found[0].as_str(), counts), ("000111".repeat(10).as_str(), [30, 30]));
    assert!(
        said.starts_with("gondwana: stripes of 3 pages are for allocations of 128 KiB and more"),
        "{said}"
    );
    let ran = run("gondwana exec --strict --rset 'proc:0|mem:0-1' --memory block -- witness pages mmap 24")
        .unwrap();
    assert_eq!((ran.status, ran.output.as_str()), (125, ""), "{ran}");
    assert!(ran.errors.starts_with("gondwana: blocks are for allocations of 128 KiB and more"), "{ran}");
}

/// Where each of five threads may run and has its pages; the main thread, which starts them, is the first of six.
fn threads(options: &str, expected: [(&str, &str); 5]) {
    let Some(ran) = run(&format!("gondwana exec {options} -- witness threads 5")) else { return };
    let line =
        |(processors, pages): (&str, &str)| format!("processors {processors} nodes 0-3 pages {pages}\n");
    assert_eq!(ran.succeeded(), expected.map(line).concat(), "{options}");
}

#[test]
fn threads_fill_one_node_after_the_other() {
    let (first, second, third) = (("0,2", "000000"), ("1", "111111"), ("3", "222222"));
    threads("--threads fill --memory local", [first, second, third, first, first]);
    threads("--rset node:0-1 --threads fill --memory local", [first, second, first, first, second]);
}

#[test]
fn threads_go_round_the_nodes_that_have_processors() {
    let (first, second, third) = (("0,2", "000000"), ("1", "111111"), ("3", "222222"));
    threads("--threads round-robin --memory local", [second, third, first, second, third]);
}

#[test]
fn threads_go_where_each_is_sent() {
    let (one, other) = (("3", "222222"), ("1-2", "333333"));
    threads("--threads 'cpu:3' --memory local", [one; 5]);
    threads(
        "--threads 'cpu:0;cpu:1-2' --memory node:3",
        [other, ("0", "333333"), other, ("0", "333333"), other],
    );
}

#[test]
fn remote_memory_of_each_thread_is_not_on_its_node() {
    let (first, second, third) = (("0,2", "111111"), ("1", "222222"), ("3", "333333"));
    threads("--threads round-robin --memory remote", [second, third, first, second, third]);
}

#[test]
fn a_user_without_privileges_has_the_same() {
    let script = "su user -c 'gondwana exec --rset node:1 --memory local -- witness threads 1
        gondwana exec --memory node:3 -- witness pages mmap 9'";
    let Some(ran) = run(script) else { return };
    assert_eq!(
        (ran.output.as_str(), ran.errors.as_str()),
        ("processors 1 nodes 0-3 pages 111111\n333333333\n", "")
    );
}

#[test]
fn what_a_control_group_forbids_is_said_and_the_program_runs_where_it_may() {
    let Some(ran) = run(&in_cpuset("1,3", "3", "gondwana exec --rset node:0-1 -- witness threads 1")) else {
        return;
    };
    let errors = ran.errors.clone();
    assert_eq!(ran.succeeded(), "processors 1 nodes 3 pages 333333\n");
    assert!(errors.contains("gondwana: processors 0,2 were asked for and are forbidden"), "{errors}");
    assert!(
        errors.contains("gondwana: binding memory is refused by the kernel: a cpuset forbids it"),
        "{errors}"
    );

    let ran =
        run(&in_cpuset("1,3", "3", "gondwana exec --strict --rset node:0 -- witness threads 1")).unwrap();
    assert_eq!((ran.status, ran.output.as_str()), (125, ""), "{ran}");

    let ran =
        run(&in_cpuset("1,3", "1,3", "gondwana exec --strict --rset node:1 -- witness threads 1")).unwrap();
    assert_eq!(ran.succeeded(), "processors 1 nodes 1,3 pages 111111\n");
}

/// Sets a variable to the KiB that are free on the small node.
const FREE: &str = "free=$(awk '/MemFree/ { print $4 }' /sys/devices/system/node/node2/meminfo)";

/// A script that leaves hardly any memory free on the small node. More may become free while it is being filled.
fn fill() -> String {
    format!(
        "{FREE}
        while [ $free -gt $((10 * 1024)) ]; do
            : > full
            witness hold 0 0 $(((free - 8 * 1024) / 4)) >> full &
            while ! grep -q - full; do :; done
            {FREE}
        done"
    )
}

#[test]
fn what_a_full_node_has_no_room_for_is_elsewhere_in_the_set() {
    let script = format!(
        "{FREE}; gondwana exec --rset 'proc:3|mem:1-2' --memory local -- witness pages mmap $((free / 4 + 4000)) |
            fold -w 1 | sort | uniq -c"
    );
    let Some(ran) = run(&script) else { return };
    let text = ran.succeeded();
    let words: Vec<&str> = text.split_whitespace().collect();
    let [on_1, "1", on_2, "2"] = words[..] else { panic!("{text}") };
    // The kernel uses some pages itself, depending on its start.
    let [on_1, on_2]: [usize; 2] = [on_1, on_2].map(|count| count.parse().unwrap());
    assert!(on_1 >= 4000 && on_2 > (on_1 + on_2 - 4000) / 2, "{text}");
}

#[test]
fn a_full_node_is_said_to_be_full() {
    let script = format!(
        "{fill}
        gondwana exec --rset 'proc:3|mem:1-2' -- witness pages mmap 4
        gondwana exec --strict --rset node:2 -- witness pages mmap 4",
        fill = fill()
    );
    let Some(ran) = run(&script) else { return };
    assert_eq!((ran.status, ran.output.len()), (125, "2222\n".len()), "{ran}");
    let full = "gondwana: node 2 ";
    assert_eq!(ran.errors.matches(full).count(), 2, "{ran}");
}

#[test]
fn a_program_whose_nodes_are_full_goes_on_where_its_set_allows() {
    // More than the node has left: with a binding the kernel would kill the program.
    for (options, elsewhere) in [
        ("--rset node:1-2 --memory node:2", "what it has no room for comes from node 1 of the set"),
        ("--rset node:2", "what it has no room for comes from other nodes"),
    ] {
        let script = format!(
            "{fill}
            gondwana exec {options} -- witness pages mmap 8000 | tr -d 2 | wc -c",
            fill = fill()
        );
        let Some(ran) = run(&script) else { return };
        let errors = ran.errors.clone();
        assert_eq!(errors, format!("gondwana: node 2 has hardly any memory left: {elsewhere}\n"));
        assert!(ran.succeeded().trim().parse::<usize>().unwrap() > 4000, "{options}");
    }
}

#[test]
fn threads_of_a_set_with_memory_only_run_nearby() {
    let Some(ran) = run("gondwana exec --rset node:3 -- witness threads 1") else { return };
    // Of the nodes with processors, node 2 is the nearest to node 3.
    assert_eq!(ran.output, "processors 3 nodes 0-3 pages 333333\n", "{ran}");
    assert_eq!(
        ran.errors,
        "gondwana: the resource set mem:3 has no processors: threads run on 3, the nearest ones\n"
    );
    let ran = run("gondwana exec --strict --rset node:3 -- witness threads 1").unwrap();
    assert_eq!((ran.status, ran.output.as_str()), (125, ""), "{ran}");
}

#[test]
fn sets_that_cannot_be_are_refused() {
    for (rset, message) in [
        ("node:4", "gondwana: --rset: the machine has no node 4 (it has 0-3)\n  node:4\n       ^\n"),
        ("cpu:1&node:2", "gondwana: the resource set none has no memory\n"),
    ] {
        let Some(ran) = run(&format!("gondwana exec --rset '{rset}' -- witness threads 1")) else { return };
        assert_eq!((ran.status, ran.output.as_str(), ran.errors.as_str()), (2, "", message));
    }
}
