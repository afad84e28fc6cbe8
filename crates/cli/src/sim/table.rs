//! The statistics as a table.

use gondwana_console::columns::{Side, columns, grouped};
use gondwana_sim::{Counters, NodeReplication, NodeStatistics, Scheduling, Statistics, Time};

/// Most nodes that get columns of their own.
const MOST: usize = 8;

const TRANSLATIONS: [&str; 2] = ["cold", "replaced"];
const CAUSES: [&str; 4] = ["cold", "replaced", "true sharing", "false sharing"];
const SUPPLIES: [&str; 6] =
    ["local memory", "local cache", "remote memory", "remote cache", "third node", "far memory cache"];

type Pages = fn(&NodeReplication) -> u64;
type OfNode = fn(&NodeStatistics) -> Time;

/// Rows about processors without threads.
const IDLE: [(&str, OfNode); 2] =
    [("processors' time idle, %", |of| of.idle), ("  while a thread slept, %", |of| of.asleep)];

/// Rows about directory caches.
const DIRECTORY: [(&str, OfNode); 2] = [
    ("hits of the directory cache", |of| of.directory.hits),
    ("misses of the directory cache", |of| of.directory.misses),
];

/// Rows about the pages that the system moves and replicates.
const REPLICATION: [(&str, Pages); 6] = [
    ("excess misses", |of| of.excess),
    ("pages migrated here", |of| of.migrated),
    ("pages replicated", |of| of.replicated),
    ("replicas given up", |of| of.given_up),
    ("replicas at the end", |of| of.replicas),
    ("misses served by replicas", |of| of.served),
];

/// The table, ending with a line break.
pub(super) fn text(statistics: &Statistics) -> String {
    let nodes = if statistics.nodes.len() <= MOST { &statistics.nodes[..] } else { &[] };
    let mut lines = vec![heading(nodes.len())];
    let mut count = |name: &str, get: &dyn Fn(&Counters) -> u64| {
        let all = nodes.iter().map(|node| &node.counters).chain([&statistics.counters]);
        let numbers: Vec<u64> = all.map(get).collect();
        if numbers.iter().any(|number| *number > 0) {
            lines.push(row(name, numbers.into_iter().map(grouped)));
        }
    };
    count("loads", &|c| c.reads);
    count("stores", &|c| c.writes);
    count("accesses outside of the machine", &|c| c.outside);
    count("misses of the translation buffer", &|c| c.tlb_misses.iter().sum());
    for (index, name) in TRANSLATIONS.iter().enumerate() {
        count(&format!("  {name}"), &move |c| c.tlb_misses[index]);
    }
    count("  processors' time for them, ns", &|c| c.tlb_stalled / 1000);
    count("hits of the first cache", &Counters::l1_hits);
    count("misses of the first cache", &|c| c.l1_misses);
    count("hits of the second cache", &Counters::l2_hits);
    count("misses of the second cache", &Counters::misses);
    for (index, name) in CAUSES.iter().enumerate() {
        count(&format!("  {name}"), &move |c| c.l2_misses[index]);
    }
    for (index, name) in SUPPLIES.iter().enumerate() {
        count(&format!("  from {name}"), &move |c| c.supplied[index]);
        count("    mean latency, ns", &move |c| c.stalled[index] / c.supplied[index].max(1) / 1000);
    }
    count("misses of the far memory cache", &|c| c.far_misses.iter().sum());
    count("  of these, writes to lines that it has", &|c| c.far_misses[1]);
    count("blocks that it had no room for", &|c| c.far_evicted.iter().sum());
    count("  of these, written back", &|c| c.far_evicted[1]);
    count("upgrades", &|c| c.upgrades);
    count("  of these, of other nodes' lines", &|c| c.remote_upgrades);
    count("lines written back", &|c| c.written_back.iter().sum());
    count("  to another node", &|c| c.written_back[1]);
    count("  to the far memory cache", &|c| c.written_back[2]);
    count("lines lost to writes of others", &|c| c.invalidated);
    count("processors' time for the system, ns", &|c| c.system_stalled / 1000);
    let all = nodes.iter().map(|node| &node.counters).chain([&statistics.counters]);
    lines.push(row("locality of misses, %", all.map(|c| percent(c.locality()))));
    let mut of_nodes = |name: &str, get: &dyn Fn(&NodeStatistics) -> String, total: String| {
        lines.push(row(name, nodes.iter().map(get).chain([total])));
    };
    let sum = |get: &dyn Fn(&NodeStatistics) -> u64| grouped(statistics.nodes.iter().map(get).sum());
    let busy = |busy: Time| percent(busy as f64 / statistics.time.max(1) as f64);
    if let Some(created) = statistics.created_locality() {
        of_nodes("created locality, %", &|_| String::new(), percent(created));
    }
    let waited = |counters: &Counters, processors: u64| {
        percent(counters.waited() as f64 / (statistics.time * processors).max(1) as f64)
    };
    let of_node = statistics.processors_per_node;
    of_nodes(
        "processors' time waiting, %",
        &|node| waited(&node.counters, of_node),
        waited(&statistics.counters, of_node * statistics.nodes.len() as u64),
    );
    let every: u64 = of_node * statistics.nodes.len() as u64;
    for (name, get) in IDLE {
        let share =
            |time: Time, processors: u64| percent(time as f64 / (statistics.time * processors).max(1) as f64);
        let total = statistics.nodes.iter().map(get).sum();
        if total > 0 {
            of_nodes(name, &|node| share(get(node), of_node), share(total, every));
        }
    }
    of_nodes("bus in use, %", &|node| busy(node.bus.busy), String::new());
    let banks = statistics.banks_per_node.max(1);
    of_nodes("memory banks in use, %", &|node| busy(node.memory.busy / banks), String::new());
    if statistics.nodes.len() > 1 {
        of_nodes("controller in use, %", &|node| busy(node.controller.busy), String::new());
        for (name, get) in DIRECTORY {
            if sum(&get) != "0" {
                of_nodes(name, &|node| grouped(get(node)), sum(&get));
            }
        }
        if statistics.nodes.iter().any(|node| node.far_cache.uses > 0) {
            of_nodes("far memory cache in use, %", &|node| busy(node.far_cache.busy), String::new());
        }
        of_nodes("messages sent", &|node| grouped(node.messages), sum(&|node| node.messages));
        of_nodes("  of these, requests", &|node| grouped(node.requests), sum(&|node| node.requests));
        of_nodes("bytes sent", &|node| grouped(node.message_bytes), sum(&|node| node.message_bytes));
        of_nodes("pages at home", &|node| grouped(node.pages), sum(&|node| node.pages));
        for (name, get) in REPLICATION {
            if statistics.nodes.iter().any(|node| get(&node.replication) > 0) {
                of_nodes(name, &|node| grouped(get(&node.replication)), sum(&|node| get(&node.replication)));
            }
        }
        of_nodes("busiest link in use, %", &|_| String::new(), busy(statistics.busiest_link().busy));
    }
    let Scheduling { switches, moved, moved_nodes } = statistics.scheduling;
    for (name, count) in [
        ("changes of a processor's thread", switches),
        ("threads moved within their node", moved),
        ("threads moved to another node", moved_nodes),
    ] {
        if count > 0 {
            of_nodes(name, &|_| String::new(), grouped(count));
        }
    }
    let sides: Vec<Side> = [Side::Left].into_iter().chain(vec![Side::Right; nodes.len() + 1]).collect();
    format!(
        "{}: {} x {} processors, {:.3} ms of simulated time\n{}",
        statistics.machine,
        statistics.nodes.len(),
        statistics.processors_per_node,
        statistics.time as f64 / 1e9,
        columns(&sides, &lines)
    )
}

/// Several runs, one a line, ending with a line break. Times are compared with the first one's.
pub(super) fn comparison(runs: &[(&str, Option<&Statistics>)]) -> String {
    let titles = [
        "",
        "simulated, ms",
        "of the first, %",
        "accesses",
        "misses, 1st",
        "misses, 2nd",
        "locality, %",
        "translations",
    ];
    let first = runs.first().and_then(|(_, statistics)| *statistics).map_or(0, |statistics| statistics.time);
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    for (name, statistics) in runs {
        let Some(Statistics { time, counters, .. }) = statistics else {
            lines.push(row(name, ["no statistics".to_owned()].into_iter()));
            continue;
        };
        let numbers = [
            format!("{:.3}", *time as f64 / 1e9),
            percent(*time as f64 / first.max(1) as f64),
            grouped(counters.reads + counters.writes),
            grouped(counters.l1_misses),
            grouped(counters.misses()),
            percent(counters.locality()),
            grouped(counters.tlb_misses.iter().sum()),
        ];
        lines.push(row(name, numbers.into_iter()));
    }
    let sides: Vec<Side> = [Side::Left].into_iter().chain([Side::Right; 7]).collect();
    columns(&sides, &lines)
}

fn heading(nodes: usize) -> Vec<String> {
    row("", (0..nodes).map(|node| format!("node {node}")).chain(["total".to_owned()]))
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [name.to_owned()].into_iter().chain(cells).collect()
}

fn percent(part: f64) -> String {
    format!("{:.1}", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_compared_with_the_first() {
        let run = |time: Time, reads: u64| {
            let counters = Counters { reads, ..Counters::default() };
            Statistics { time, counters, ..Statistics::default() }
        };
        let (first, second) = (run(4_000_000_000, 1234), run(3_000_000_000, 1235));
        let text = comparison(&[("a", Some(&first)), ("b", None), ("c", Some(&second))]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a", "4.000", "100.0", "1,234", "0", "0", "100.0", "0"]);
        assert_eq!(lines[2], ["b", "no", "statistics"]);
        assert_eq!(lines[3][..4], ["c", "3.000", "75.0", "1,235"]);
    }

    #[test]
    fn rows_without_numbers_are_left_out() {
        let mut statistics =
            Statistics { machine: "m".to_owned(), time: 2_000_000_000, ..Statistics::default() };
        statistics.nodes = vec![NodeStatistics::default(), NodeStatistics::default()];
        statistics.nodes[1].counters.reads = 1234;
        statistics.nodes[1].bus.busy = 1_000_000_000;
        (statistics.nodes[0].idle, statistics.nodes[0].asleep) = (4_000_000_000, 1_000_000_000);
        statistics.nodes[1].counters.stalled[0] = 2_000_000_000;
        statistics.processors_per_node = 2;
        statistics.banks_per_node = 4;
        statistics.nodes[0].memory.busy = 2_000_000_000;
        statistics.counters = statistics.nodes[1].counters.clone();
        let text = text(&statistics);
        assert!(text.starts_with("m: 2 x 2 processors, 2.000 ms of simulated time\n"), "{text}");
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
            .collect();
        assert!(lines.contains(&vec!["loads", "0", "1,234", "1,234"]), "{text}");
        assert!(lines.contains(&vec!["bus in use, %", "0.0", "50.0"]), "{text}");
        assert!(lines.contains(&vec!["processors' time waiting, %", "0.0", "50.0", "25.0"]), "{text}");
        assert!(lines.contains(&vec!["processors' time idle, %", "100.0", "0.0", "50.0"]), "{text}");
        assert!(lines.contains(&vec!["while a thread slept, %", "25.0", "0.0", "12.5"]), "{text}");
        assert!(lines.contains(&vec!["memory banks in use, %", "25.0", "0.0"]), "{text}");
        assert!(lines.contains(&vec!["hits of the first cache", "0", "1,234", "1,234"]), "{text}");
        assert!(!text.contains("stores"), "{text}");
    }
}
