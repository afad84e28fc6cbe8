//! `gondwana bench memory`: threads and pages of every pair of nodes. How fast they are means nothing here.

use crate::guest::{PROCESSORS, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The measured cases.
fn cases(user: &str, options: &str) -> Option<Vec<Value>> {
    let script = format!(
        "su {user} -c 'cd /tmp && gondwana bench memory {options} --json json >/dev/null && cat json'"
    );
    let ran = run(&format!("rm -f /tmp/json; {script}"))?;
    let json: Value = serde_json::from_str(&ran.succeeded()).unwrap();
    Some(json["cases"].as_array().unwrap().clone())
}

/// The numbers of a case.
fn number(case: &Value, name: &str) -> usize {
    usize::try_from(case[name].as_u64().unwrap()).unwrap()
}

/// The pairs that were measured; each had its threads and pages where they belong.
fn pairs(cases: &[Value], pages_of_array: usize) -> BTreeSet<(usize, usize)> {
    let placed = |case: &Value| {
        let (node, memory, threads) = (number(case, "node"), number(case, "memory"), number(case, "threads"));
        let arrays = if case["test"].as_str().unwrap().ends_with("MemCp") { 2 } else { 1 };
        let pages = json!({ memory.to_string(): pages_of_array * arrays });
        let processors: Vec<String> = PROCESSORS[node][..threads].iter().map(u32::to_string).collect();
        assert_eq!(case["asked"]["pages"], pages, "{case}");
        assert_eq!(case["found"], json!({ "processors": processors.join(","), "pages": pages }), "{case}");
        (node, memory)
    };
    cases.iter().map(placed).collect()
}

#[test]
fn every_pair_of_nodes_is_measured_with_threads_and_pages_in_place() {
    let Some(cases) = cases("root", "--size 64KiB --threads 1") else { return };
    assert_eq!(cases.len(), 3 * 4 * 4);
    let expected = [0, 1, 2].into_iter().flat_map(|node| [0, 1, 2, 3].map(|memory| (node, memory))).collect();
    assert_eq!(pairs(&cases, 16), expected);
    for case in &cases {
        assert_eq!(case["times_local"].is_number(), case["node"] != case["memory"], "{case}");
    }
}

#[test]
fn several_threads_have_a_processor_each() {
    let Some(cases) = cases("user", "--size 64KiB --nodes 0,3") else { return };
    // Three tests by one thread and by two, and latency; node 3 has memory only.
    assert_eq!(cases.len(), 7 * 2);
    assert_eq!(pairs(&cases, 16), BTreeSet::from([(0, 0), (0, 3)]));
    assert_eq!(cases.iter().filter(|case| case["scaling"].is_number()).count(), 6);
}

#[test]
fn nodes_that_lack_what_is_needed_are_refused() {
    let Some(ran) = run("gondwana bench memory --nodes 3") else { return };
    let sentence = "gondwana: --nodes: this process may use no processors of node 3\n";
    assert_eq!((ran.status, ran.errors.as_str()), (2, sentence));
}

#[test]
fn nodes_of_a_run_are_measured_in_the_guest_too() {
    let Some(cases) = cases("user", "--cluster -n 2 --threads 1 --size 32KiB") else { return };
    assert_eq!(cases.len(), 2 * 2 * 4);
    assert!(cases.iter().all(|case| case["including_coherence"]["nanoseconds"].is_number()), "{cases:#?}");
}
