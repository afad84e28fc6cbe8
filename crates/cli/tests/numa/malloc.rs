//! `gondwana exec --malloc`: where the pages of a program's allocations are.

use crate::guest::run;
use serde_json::Value;

/// The node of each page of a block that the witness allocates under these options, and of one page more; and the
/// command's messages.
fn pages(options: &str, count: usize) -> Option<(String, String)> {
    let ran = run(&format!("gondwana exec {options} -- witness pages malloc {count}"))?;
    let errors = ran.errors.clone();
    Some((ran.succeeded().trim_end().to_owned(), errors))
}

/// The pages are placed as expected, and there is no message.
fn placed(options: &str, expected: &str) {
    let Some(found) = pages(options, expected.len()) else { return };
    assert_eq!(found, (expected.to_owned(), String::new()), "{options}");
}

#[test]
fn large_blocks_are_placed_by_each_policy() {
    placed("--malloc '>=64K=striped:4'", &"0000111122223333".repeat(4));
    placed("--malloc '>=64K=striped@mem:1,3'", &"13".repeat(32));
    // The block has a page more than is shown.
    placed("--malloc '>=64K=block'", &("0".repeat(16) + &"1".repeat(16) + &"2".repeat(16) + &"3".repeat(15)));
    placed("--malloc '>=64K=node:3'", &"3".repeat(64));
    placed("--rset 'proc:1|mem:0-3' --malloc '>=64K=local'", &"1".repeat(64));
    placed("--rset 'proc:1|mem:0-3' --malloc '>=64K=remote'", &"2".repeat(64));
    placed("--rset 'proc:3|mem:0-3' --malloc '>=64K=float@mem:1'", &"1".repeat(64));
}

#[test]
fn touching_and_locking_early_changes_no_place() {
    for extra in ["--prefault", "--lock", "--prefault --lock"] {
        placed(&format!("{extra} --malloc '>=64K=striped:2'"), &"00112233".repeat(8));
        placed(&format!("{extra} --rset 'proc:3|mem:0-3' --malloc '>=64K=local'"), &"2".repeat(64));
    }
}

#[test]
fn huge_pages_do_not_spoil_stripes_and_blocks() {
    placed("--malloc '>=64K=striped:256'", &["0", "1", "2", "3"].map(|node| node.repeat(256)).concat());
    let parts = ["0", "1", "2"].map(|node| node.repeat(512)).concat() + &"3".repeat(511);
    placed("--malloc '>=64K=block'", &parts);
}

#[test]
fn small_blocks_are_placed_too() {
    placed("--malloc '<64K=node:2'", "22222");
    placed("--rset 'proc:1|mem:0-3' --malloc 'all=local'", "11111");
}

#[test]
fn the_first_rule_that_fits_counts_and_others_have_what_the_program_has() {
    placed("--malloc '>=100K=node:1' --malloc 'all=node:3'", &"1".repeat(64));
    placed("--malloc '>=100K=node:1' --malloc 'all=node:3'", "33333");
    placed("--memory node:2 --malloc '>=100K=node:1'", "22222");
}

#[test]
fn calls_are_known_by_their_function() {
    placed("--malloc 'main=node:3'", &"3".repeat(64));
    placed("--memory node:1 --malloc 'main&>=1G=node:3'", &"1".repeat(64));
    placed("--memory node:1 --malloc 'main+0x1=node:3'", &"1".repeat(64));
}

#[test]
fn the_report_counts_what_was_asked_for_and_what_was_found() {
    let Some((_, said)) = pages("--report --malloc '>=300K=striped:4'", 99) else { return };
    let line = said.lines().last().unwrap();
    let expected = "gondwana: witness: >=300K=striped:4@proc:0-3|mem:0-3: 1 allocations of 409600 bytes; asked for pages: \
         28 on node 0, 24 on node 1, 24 on node 2, 24 on node 3; found: 28 on node 0, 24 on node 1, 24 on node 2, 24 on node 3";
    assert_eq!(line, expected);
}

#[test]
fn a_user_without_privileges_has_the_same_except_for_colours() {
    let command = "gondwana exec --malloc '>=64K=striped:4' -- witness pages malloc 32";
    let Some(ran) = run(&format!("su user -c \"{command}\"")) else { return };
    assert_eq!((ran.output.as_str(), ran.errors.as_str()), ("00001111222233330000111122223333\n", ""));
    let coloured = "gondwana exec --colours --malloc '>=64K=node:1' -- witness pages malloc 32";
    let ran = run(&format!("su user -c \"{coloured}\"")).unwrap();
    assert_eq!(ran.output.trim_end(), "1".repeat(32), "{ran}");
    assert!(ran.errors.starts_with("gondwana: pages cannot be coloured: "), "{ran}");
    let strict = coloured.replace("exec", "exec --strict");
    let ran = run(&format!("su user -c \"{strict}\"")).unwrap();
    assert_eq!((ran.status, ran.output.as_str()), (125, ""), "{ran}");
}

#[test]
fn what_a_full_node_has_no_room_for_is_elsewhere_and_counted() {
    let script = "free=$(awk '/MemFree/ { print $4 }' /sys/devices/system/node/node2/meminfo)
        gondwana exec --report --malloc '>=1M=node:2' -- witness pages malloc $((free / 4 + 4000)) |
            fold -w 1 | sort | uniq -c";
    let Some(ran) = run(script) else { return };
    let errors = ran.errors.clone();
    let text = ran.succeeded();
    let on =
        |node| text.lines().find_map(|line| line.trim().strip_suffix(node)?.trim().parse::<usize>().ok());
    let all: usize = [" 0", " 1", " 2", " 3"].into_iter().filter_map(on).sum();
    assert!((all - 4000) / 2 < on(" 2").unwrap() && on(" 2").unwrap() < all, "{text}");
    assert!(errors.contains("asked for pages: ") && errors.contains(" on node 2"), "{errors}");
}

#[test]
fn what_a_control_group_forbids_is_said() {
    let command = "gondwana exec --rset all --malloc '>=64K=node:1' -- witness pages malloc 32";
    let Some(ran) = run(&crate::witness::in_cpuset("1,3", "3", command)) else { return };
    assert_eq!(ran.output.trim_end(), "3".repeat(32), "{ran}");
    assert!(ran.errors.contains("is refused by the kernel: a cpuset forbids it"), "{ran}");
}

#[test]
fn where_shows_the_memory_of_each_rule() {
    let script = "rm -f held && mkfifo held || exit
        gondwana exec --malloc '>=64K=striped:4@mem:0-3' -- witness block 64 > held &
        read process start < held
        gondwana where --json $process
        gondwana where $process
        kill $process";
    let Some(ran) = run(script) else { return };
    let text = ran.succeeded();
    let (json, tables) = text.split_at(text.find("\n}\n").unwrap() + 3);
    let answer: Value = serde_json::from_str(json).unwrap();
    let of_rule = |mapping: &&Value| mapping["heap"] == ">=64K=striped:4@mem:0-3";
    let mappings: Vec<&Value> = answer["mappings"].as_array().unwrap().iter().filter(of_rule).collect();
    assert_eq!(mappings.len(), 1, "{answer:#}");
    let bytes = serde_json::json!({ "0": 16 << 12, "1": 16 << 12, "2": 16 << 12, "3": 16 << 12 });
    assert_eq!((&mappings[0]["bytes"], &mappings[0]["kind"]), (&bytes, &Value::from("heap")));
    let line = tables.lines().find(|line| line.starts_with(">=64K=striped:4@mem:0-3 ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!(words.join(" "), "64 KiB 64 KiB 64 KiB 64 KiB 256 KiB");
    assert!(tables.contains("00112233001122330011223300112233"), "{tables}");
}
