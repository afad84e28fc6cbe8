//! A snapshot as text.

use super::snapshot::Snapshot;
use crate::topo::time;
use gondwana_console::clean::line;
use gondwana_console::columns::{Side, amount, columns, to_whole};

/// The whole text, with so many lines of each list.
pub(super) fn whole(shown: &Snapshot, listed: usize) -> String {
    let parts = [
        title(shown),
        silence(shown),
        nodes(shown, usize::MAX),
        kinds(shown),
        areas(shown, listed),
        threads(shown, listed),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The text that fits on a screen, line by line.
pub(super) fn fitting(shown: &Snapshot, rows: usize, columns: usize) -> Vec<String> {
    // Title, and each list with its heading and a line between them.
    let fixed = 2 + 2 + 2 + 2 + 1;
    let node_lines = shown.nodes.len().min(rows / 2);
    let left = rows.saturating_sub(fixed + node_lines);
    let thread_lines = shown.threads.len().min(left / 3);
    let area_lines = left - thread_lines;
    let parts = [
        title(shown),
        silence(shown),
        nodes(shown, node_lines),
        kinds(shown),
        areas(shown, area_lines),
        threads(shown, thread_lines),
    ];
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    text.lines().take(rows).map(|line| line.chars().take(columns).collect()).collect()
}

fn title(shown: &Snapshot) -> String {
    let recorded = match &shown.recorded {
        Some(file) => format!(", recorded in {}", line(&file.display().to_string())),
        None => String::new(),
    };
    format!(
        "{} (process {}) for {}: per second, in the last {:.1} s{recorded}\n",
        line(&shown.program),
        shown.process,
        time(shown.seconds),
        shown.interval
    )
}

/// Where to look when nothing happens.
fn silence(shown: &Snapshot) -> String {
    if shown.nodes.iter().any(|node| node.faults > 0.0 || node.messages > 0.0) {
        return String::new();
    }
    format!("no faults, no messages: gondwana stack {} shows what the threads do\n", shown.process)
}

/// A rate in a few digits.
fn rate(rate: f64) -> String {
    if rate == 0.0 || rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

fn bytes(rate: f64) -> String {
    amount(to_whole(rate.round()))
}

fn table(sides: &[Side], heading: &[&str], lines: impl Iterator<Item = Vec<String>>) -> String {
    let heading = heading.iter().map(|&cell| cell.to_owned()).collect();
    columns(sides, &std::iter::once(heading).chain(lines).collect::<Vec<_>>())
}

fn nodes(shown: &Snapshot, most: usize) -> String {
    let mut hottest: Vec<usize> = (0..shown.nodes.len()).collect();
    if hottest.len() > most {
        hottest.sort_by(|&a, &b| shown.nodes[b].faults.total_cmp(&shown.nodes[a].faults));
        hottest.truncate(most);
    }
    let line = |number: usize| {
        let node = &shown.nodes[number];
        vec![
            number.to_string(),
            line(&node.host),
            node.process.map_or("-".to_owned(), |process| process.to_string()),
            rate(node.faults),
            rate(node.fetches),
            rate(node.diffs),
            bytes(node.bytes_in),
            bytes(node.bytes_out),
            rate(node.messages),
        ]
    };
    use Side::{Left, Right};
    table(
        &[Right, Left, Right, Right, Right, Right, Right, Right, Right],
        &["node", "host", "process", "faults", "fetches", "diffs", "in", "out", "messages"],
        hottest.into_iter().map(line),
    )
}

fn kinds(shown: &Snapshot) -> String {
    let each = |kind: &super::snapshot::KindRates| format!("{} {}", kind.kind, rate(kind.transactions));
    let common = if shown.common {
        "; pages common to the nodes are not shown (--common-after 0 has none)"
    } else {
        ""
    };
    match &shown.kinds[..] {
        [] => format!("nothing crosses between the nodes{common}\n"),
        kinds => format!("{}{common}\n", kinds.iter().map(each).collect::<Vec<_>>().join(", ")),
    }
}

fn areas(shown: &Snapshot, most: usize) -> String {
    if shown.areas.is_empty() || most == 0 {
        return String::new();
    }
    let line = |area: &super::snapshot::AreaRates| {
        let nodes = area.nodes.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        vec![rate(area.requests), bytes(area.bytes), nodes, area.pattern.name().to_owned(), line(&area.name)]
    };
    use Side::{Left, Right};
    table(
        &[Right, Right, Left, Left, Left],
        &["requests", "bytes", "nodes", "sharing", "data"],
        shown.areas.iter().take(most).map(line),
    )
}

fn threads(shown: &Snapshot, most: usize) -> String {
    if shown.threads.is_empty() || most == 0 {
        return String::new();
    }
    let line = |thread: &super::snapshot::ThreadRates| {
        vec![thread.thread.to_string(), thread.node.to_string(), rate(thread.fetches)]
    };
    let sides = [Side::Right; 3];
    table(&sides, &["thread", "node", "fetches"], shown.threads.iter().take(most).map(line))
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::{AreaRates, KindRates, NodeRates, ThreadRates};
    use super::*;
    use gondwana_analysis::Pattern;

    fn shown() -> Snapshot {
        let node = |process, faults| NodeRates {
            host: "alpha".to_owned(),
            process,
            faults,
            fetches: 4.5,
            diffs: 0.0,
            bytes_in: 18432.0,
            bytes_out: 0.0,
            messages: 12.0,
        };
        let area = |name: &str| AreaRates {
            name: name.to_owned(),
            pattern: Pattern::Migratory,
            requests: 4.5,
            bytes: 18432.0,
            nodes: vec![0, 1],
        };
        Snapshot {
            process: 77,
            program: "./a\x1b[2J".to_owned(),
            seconds: 75.5,
            interval: 1.02,
            recorded: None,
            common: false,
            nodes: vec![node(Some(78), 9.0), node(None, 10.0)],
            kinds: vec![KindRates { kind: "read", transactions: 9.0, bytes: 36864.0 }],
            areas: vec![area("grid"), area("sum")],
            threads: vec![ThreadRates { thread: 2, node: 1, fetches: 4.5 }],
        }
    }

    #[test]
    fn a_snapshot_is_a_title_and_tables() {
        let expected = "\
./a\u{fffd}[2J (process 77) for 1 min 15 s: per second, in the last 1.0 s

node  host   process  faults  fetches  diffs      in  out  messages
   0  alpha       78     9.0      4.5      0  18 KiB  0 B        12
   1  alpha        -      10      4.5      0  18 KiB  0 B        12

read 9.0

requests   bytes  nodes  sharing    data
     4.5  18 KiB  0 1    migratory  grid
     4.5  18 KiB  0 1    migratory  sum

thread  node  fetches
     2     1      4.5
";
        assert_eq!(whole(&shown(), 9), expected);
        assert!(!whole(&shown(), 1).contains("sum"));
        let common = Snapshot { common: true, ..shown() };
        assert!(whole(&common, 9).contains("\nread 9.0; pages common to the nodes are not shown"));
        let idle = Snapshot { kinds: vec![], ..common };
        assert!(whole(&idle, 9).contains("\nnothing crosses between the nodes; pages common"));
    }

    #[test]
    fn small_screens_show_the_hottest() {
        for (rows, columns) in [(2, 2), (4, 40), (8, 80), (12, 30), (40, 200)] {
            let lines = fitting(&shown(), rows, columns);
            assert!(lines.len() <= rows, "{lines:?}");
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
        }
        let lines = fitting(&shown(), 3, 80);
        assert!(lines[2].starts_with("node"), "{lines:?}");
        assert!(fitting(&shown(), 40, 80).len() > fitting(&shown(), 12, 80).len());
    }
}
