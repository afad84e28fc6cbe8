//! The rates of a run in one interval.

use super::feed::Feed;
use gondwana_analysis::{Analysis, Pattern, analyse};
use gondwana_launcher::run_registry::Running;
use gondwana_monitor::Kind;
use gondwana_recording::{ImageRecord, Recording, TotalsRecord};
use gondwana_symbols::Symbols;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// The rates of one interval, all per second.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Snapshot {
    /// The process of the launcher.
    pub process: u32,
    /// The program.
    pub program: String,
    /// The age of the run, in seconds.
    pub seconds: f64,
    /// How long the interval was, in seconds.
    pub interval: f64,
    /// The file that the run is recorded in besides.
    pub recorded: Option<PathBuf>,
    /// Whether pages may be common to its nodes, which no list has.
    pub common: bool,
    /// The nodes by number.
    pub nodes: Vec<NodeRates>,
    /// The kinds of transactions that there were.
    pub kinds: Vec<KindRates>,
    /// The data that crossed between nodes, hottest first.
    pub areas: Vec<AreaRates>,
    /// The threads that waited for pages, hottest first.
    pub threads: Vec<ThreadRates>,
}

/// One node.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct NodeRates {
    /// Its host.
    pub host: String,
    /// Its process there.
    pub process: Option<u32>,
    /// Faults that its threads took.
    pub faults: f64,
    /// Pages that they waited for.
    pub fetches: f64,
    /// Diffs that it sent.
    pub diffs: f64,
    /// Bytes of received pages and diffs.
    pub bytes_in: f64,
    /// Bytes of pages and diffs that left.
    pub bytes_out: f64,
    /// Messages that it sent.
    pub messages: f64,
}

/// One kind of transactions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KindRates {
    /// Its name.
    pub kind: &'static str,
    /// How many.
    pub transactions: f64,
    /// Bytes that moved.
    pub bytes: f64,
}

/// One data area.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AreaRates {
    /// Its name.
    pub name: String,
    /// How it was shared in this interval.
    pub pattern: Pattern,
    /// Pages fetched, diffs, notices.
    pub requests: f64,
    /// Bytes that moved.
    pub bytes: f64,
    /// The nodes that asked for it.
    pub nodes: Vec<usize>,
}

/// One thread.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ThreadRates {
    /// Its number; 0 runs `main`.
    pub thread: u32,
    /// Its node.
    pub node: u16,
    /// Pages that it waited for.
    pub fetches: f64,
}

/// Makes snapshots of one run.
pub(super) struct Rates {
    process: u32,
    running: Running,
    recorded: Option<PathBuf>,
    asked: Instant,
    /// The totals of each node at the last snapshot.
    before: BTreeMap<u16, TotalsRecord>,
    /// The names, and the number of files that they are from.
    symbols: (usize, Symbols),
}

impl Rates {
    /// For a run with this description; `recorded` is the file that it is also recorded in, if any.
    pub(super) fn new(process: u32, running: Running, recorded: Option<PathBuf>) -> Self {
        let symbols = (0, Symbols::open(&[]).0);
        Self { process, running, recorded, asked: Instant::now(), before: BTreeMap::new(), symbols }
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.running.nodes.len()
    }

    /// The rates since the last snapshot.
    pub(super) fn snapshot(&mut self, feed: &mut Feed) -> Snapshot {
        feed.look(|recording| self.of(recording))
    }

    fn of(&mut self, recording: &Recording) -> Snapshot {
        self.learn_names(recording);
        let mut done: BTreeMap<u16, TotalsRecord> = BTreeMap::new();
        let mut interval = 0.0_f64;
        for (node, totals) in &recording.totals {
            done.insert(*node, *totals);
        }
        let mut since = BTreeMap::new();
        for (&node, &totals) in &done {
            // A node with a new session counts from 0 again.
            let before = self.before.get(&node).filter(|before| before.time <= totals.time);
            let before = before.copied().unwrap_or_default();
            since.insert(node, difference(&totals, &before));
            interval = interval.max((totals.time - before.time) as f64 / 1e9);
            self.before.insert(node, totals);
        }
        let analysis = analyse(recording, &self.symbols.1);
        let per_second = |count: u64| if interval > 0.0 { count as f64 / interval } else { 0.0 };
        Snapshot {
            process: self.process,
            program: self.running.program.clone(),
            seconds: self.running.seconds + self.asked.elapsed().as_secs_f64(),
            interval,
            recorded: self.recorded.clone(),
            common: self.running.common,
            nodes: self.of_nodes(recording, &analysis, &since, per_second),
            kinds: kinds(recording, per_second),
            areas: areas(&analysis, per_second),
            threads: threads(recording, per_second),
        }
    }

    /// Opens the files of the program once the nodes have sent their records.
    fn learn_names(&mut self, recording: &Recording) {
        let first = recording.started.iter().flat_map(|(_, started)| &started.images);
        let later = recording.images.iter().map(|(_, image)| image);
        let images: Vec<ImageRecord> = first.chain(later).cloned().collect();
        if images.len() != self.symbols.0 {
            self.symbols = (images.len(), Symbols::open(&images).0);
        }
    }

    fn of_nodes(
        &self,
        recording: &Recording,
        analysis: &Analysis,
        since: &BTreeMap<u16, TotalsRecord>,
        per_second: impl Fn(u64) -> f64,
    ) -> Vec<NodeRates> {
        let node = |(number, running): (usize, &gondwana_launcher::run_registry::RunningNode)| {
            let said = recording.started.iter().find(|(node, _)| usize::from(*node) == number);
            let host = running.host.clone().or(said.map(|(_, started)| started.host.clone()));
            let since =
                u16::try_from(number).ok().and_then(|number| since.get(&number)).copied().unwrap_or_default();
            let totals = analysis.nodes.get(number).map(|node| node.totals).unwrap_or_default();
            let bytes = |flow: Option<&gondwana_analysis::Flow>| flow.map_or(0, |flow| flow.bytes);
            let bytes_in: u64 = analysis.flows.iter().map(|to| bytes(to.get(number))).sum();
            let bytes_out: u64 =
                analysis.flows.get(number).into_iter().flatten().map(|flow| flow.bytes).sum();
            NodeRates {
                host: host.unwrap_or_default(),
                process: running.process.or(said.map(|(_, started)| started.process)),
                faults: per_second(since.faults),
                fetches: per_second(totals.reads + totals.writes),
                diffs: per_second(totals.diffs),
                bytes_in: per_second(bytes_in),
                bytes_out: per_second(bytes_out),
                messages: per_second(since.messages),
            }
        };
        self.running.nodes.iter().enumerate().map(node).collect()
    }
}

fn difference(now: &TotalsRecord, before: &TotalsRecord) -> TotalsRecord {
    TotalsRecord {
        time: now.time - before.time,
        faults: now.faults.saturating_sub(before.faults),
        messages: now.messages.saturating_sub(before.messages),
        bytes: now.bytes.saturating_sub(before.bytes),
    }
}

fn kinds(recording: &Recording, per_second: impl Fn(u64) -> f64) -> Vec<KindRates> {
    let mut sums: BTreeMap<Kind, (u64, u64)> = BTreeMap::new();
    for (_, _, row) in recording.rows() {
        let sum = sums.entry(row.kind).or_default();
        *sum = (sum.0 + u64::from(row.count), sum.1 + row.bytes);
    }
    let rates = |(kind, (count, bytes)): (Kind, (u64, u64))| KindRates {
        kind: kind.name(),
        transactions: per_second(count),
        bytes: per_second(bytes),
    };
    sums.into_iter().map(rates).collect()
}

fn areas(analysis: &Analysis, per_second: impl Fn(u64) -> f64) -> Vec<AreaRates> {
    let rates = |area: &gondwana_analysis::Area| AreaRates {
        name: area.name.clone(),
        pattern: area.pattern,
        requests: per_second(area.totals.requests()),
        bytes: per_second(area.totals.bytes),
        nodes: (0..area.nodes.len()).filter(|&node| area.nodes[node].totals.requests() > 0).collect(),
    };
    analysis.areas.iter().map(rates).collect()
}

fn threads(recording: &Recording, per_second: impl Fn(u64) -> f64) -> Vec<ThreadRates> {
    let mut sums: BTreeMap<(u16, u32), u64> = BTreeMap::new();
    for (node, _, row) in recording.rows().filter(|(_, _, row)| row.kind.is_fetch()) {
        if let Some(thread) = row.thread.checked_sub(1) {
            *sums.entry((node, thread)).or_default() += u64::from(row.count);
        }
    }
    let mut threads: Vec<((u16, u32), u64)> = sums.into_iter().collect();
    threads.sort_by_key(|(_, fetches)| std::cmp::Reverse(*fetches));
    let rates = |((node, thread), fetches)| ThreadRates { thread, node, fetches: per_second(fetches) };
    threads.into_iter().map(rates).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_launcher::run_registry::RunningNode;
    use gondwana_monitor::Direction;
    use gondwana_recording::{Interval, RunRecord, TransactionRow};

    fn running() -> Running {
        Running {
            program: "./p".to_owned(),
            seconds: 10.0,
            fabric: "shm".to_owned(),
            consistency: "rc".to_owned(),
            processors_each: 1,
            span: 1 << 30,
            monitored: true,
            common: false,
            nodes: vec![RunningNode::starting(Some("a".to_owned())), RunningNode::starting(None)],
        }
    }

    fn totals(time: u64, faults: u64) -> TotalsRecord {
        TotalsRecord { time, faults, messages: 2 * faults, bytes: 0 }
    }

    #[test]
    fn rates_are_differences_over_the_time_between_two_looks() {
        let row = TransactionRow {
            address: 0x1000,
            unit: 12,
            kind: Kind::Read,
            direction: Direction::Out,
            peer: 0,
            thread: 3,
            code: 0,
            count: 8,
            bytes: 8 * 4096,
        };
        let run = RunRecord { nodes: 2, page_bytes: 4096, ..RunRecord::default() };
        let mut recording = Recording { run, ..Recording::default() };
        recording.totals = vec![(0, totals(1_000_000_000, 5)), (1, totals(1_000_000_000, 7))];
        let mut rates = Rates::new(7, running(), None);
        rates.of(&recording);
        recording.totals = vec![
            (1, totals(2_000_000_000, 9)),
            (1, totals(3_000_000_000, 11)),
            (0, totals(3_000_000_000, 5)),
        ];
        recording.intervals = vec![(1, Interval { begin: 0, end: 1, rows: vec![row] })];
        let shown = rates.of(&recording);
        assert_eq!(shown.interval, 2.0);
        let node = &shown.nodes[1];
        assert_eq!((node.faults, node.messages, node.fetches), (2.0, 4.0, 4.0));
        assert_eq!((node.bytes_in, shown.nodes[0].bytes_out), (16384.0, 16384.0));
        assert_eq!((shown.nodes[0].faults, shown.nodes[0].host.as_str()), (0.0, "a"));
        assert_eq!((shown.kinds[0].kind, shown.kinds[0].transactions), ("read", 4.0));
        assert_eq!((shown.threads[0].thread, shown.threads[0].node), (2, 1));
        assert_eq!((shown.areas.len(), &shown.areas[0].nodes), (1, &vec![1]));
    }

    #[test]
    fn a_node_that_begins_anew_counts_from_nothing() {
        let run = RunRecord { nodes: 2, page_bytes: 4096, ..RunRecord::default() };
        let mut recording = Recording { run, ..Recording::default() };
        let mut rates = Rates::new(7, running(), None);
        recording.totals = vec![(0, totals(9_000_000_000, 50))];
        rates.of(&recording);
        recording.totals = vec![(0, totals(1_000_000_000, 3))];
        assert_eq!(rates.of(&recording).nodes[0].faults, 3.0);
        recording.totals.clear();
        let still = rates.of(&recording);
        assert_eq!((still.interval, still.nodes[0].faults), (0.0, 0.0));
    }
}
