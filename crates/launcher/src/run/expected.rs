//! Compares a plan's expected saving with the actual one.

use gondwana_console::columns::grouped;
use gondwana_memory::PAGE_SIZE;
use gondwana_plan::Traffic;
use serde_json::Value;

/// The requests between nodes, by their counters; `None` if a node has not reported.
pub(crate) fn traffic(nodes: &[Option<Value>]) -> Option<Traffic> {
    let mut sum = Traffic::default();
    for node in nodes {
        let node = node.as_ref()?;
        let count = |group: &str, name: &str| node[group][name].as_u64().unwrap_or(0);
        sum.requests += count("pages", "awaited") + count("diffs", "sent") + count("notices", "received");
        sum.bytes += count("pages", "transfers") * PAGE_SIZE as u64 + count("diffs", "bytes");
    }
    Some(sum)
}

/// A line that compares a run under a plan with the run that the plan was made from.
pub(crate) fn comparison(now: Traffic, before: Traffic, expected: Option<Traffic>) -> String {
    let numbers = |of: fn(&Traffic) -> u64| {
        let (now, before) = (of(&now), of(&before));
        let expected =
            expected.map_or(String::new(), |traffic| format!(", expected {}", grouped(of(&traffic))));
        format!("{} (before {}{expected}{})", grouped(now), grouped(before), factor(before, now))
    };
    let (requests, bytes) = (numbers(|traffic| traffic.requests), numbers(|traffic| traffic.bytes));
    format!("plan: requests {requests}; bytes {bytes}")
}

fn factor(before: u64, now: u64) -> String {
    let times = |more: u64, less: u64| more as f64 / less as f64;
    match (before, now) {
        (0, _) | (_, 0) => String::new(),
        _ if before >= now => format!(": {:.1} times fewer", times(before, now)),
        _ => format!(": {:.1} times more", times(now, before)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_pages_that_threads_wait_for_diffs_and_notices() {
        let node = json!({
            "pages": {"awaited": 7, "fetches": 10, "transfers": 2},
            "diffs": {"sent": 5, "bytes": 100},
            "notices": {"received": 4, "sent": 1000},
        });
        let expected = Traffic { requests: 32, bytes: 2 * (2 * 4096 + 100) };
        assert_eq!(traffic(&[Some(node.clone()), Some(node.clone())]), Some(expected));
        assert_eq!(traffic(&[Some(node), None]), None);
    }

    #[test]
    fn numbers_stand_beside_those_before() {
        let of = |requests, bytes| Traffic { requests, bytes };
        assert_eq!(
            comparison(of(1500, 4096), of(12_000, 2048), Some(of(1000, 1024))),
            "plan: requests 1,500 (before 12,000, expected 1,000: 8.0 times fewer); \
             bytes 4,096 (before 2,048, expected 1,024: 2.0 times more)"
        );
        assert_eq!(
            comparison(of(0, 0), of(1, 1024), None),
            "plan: requests 0 (before 1); bytes 0 (before 1,024)"
        );
    }
}
