//! Running a program with the monitor and without.

use super::case::{MonitorCase, Time};
use crate::child;
use crate::programs::{OnNodes, Programs};
use crate::samples::{Samples, nanoseconds};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimedRun {
    /// Nanoseconds that count.
    pub time: u64,
    /// Nanoseconds that all processors together have spent on it.
    pub processors: u64,
}

/// A run without the monitor and the next one with it, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Without.
    pub without: TimedRun,
    /// With.
    pub with: TimedRun,
}

impl Pair {
    /// Time with the monitor : time without it.
    pub(super) fn ratio(&self) -> f64 {
        self.with.time as f64 / self.without.time.max(1) as f64
    }
}

/// What a recording holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordedRun {
    /// What each node has noted.
    pub nodes: BTreeMap<u16, Noted>,
    /// The length of the file.
    pub bytes: u64,
}

/// What a node has noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// How many transactions.
    pub transactions: u64,
    /// How often a row was looked for, at most: the pages of a block that come at once are noted at once.
    pub times: u64,
    /// In how many rows they were written down.
    pub rows: u64,
}

impl Noted {
    /// One more row, of transactions about a block of 2^`parts` parts.
    fn add(&mut self, count: u32, parts: u8) {
        self.transactions += u64::from(count);
        self.times += u64::from(count) >> parts;
        self.rows += 1;
    }
}

/// Runs the case once each way; without the monitor first if `without_first`.
pub(super) fn pair(
    case: &MonitorCase,
    nodes: u16,
    programs: &Programs,
    without_first: bool,
) -> Result<(Pair, RecordedRun), String> {
    let file = programs.folder().join("recording");
    let first = without_first.then(|| run(case, nodes, programs, None)).transpose()?;
    let with = run(case, nodes, programs, Some(&file))?;
    let without = first.map_or_else(|| run(case, nodes, programs, None), Ok)?;
    let recorded = recorded(&file)?;
    std::fs::remove_file(&file).map_err(|error| error.to_string())?;
    Ok((Pair { without, with }, recorded))
}

fn run(
    case: &MonitorCase,
    nodes: u16,
    programs: &Programs,
    monitor: Option<&Path>,
) -> Result<TimedRun, String> {
    let is_workload = case.is_workload();
    let mut command = programs.command(
        case.program,
        case.arguments,
        is_workload,
        // A monitored run copies everything, so the other one does, too: what is measured is the monitor.
        Some(OnNodes { monitor, copies: true, ..OnNodes::new(nodes) }),
    )?;
    if is_workload {
        command.args(["-p", &nodes.to_string()]);
    }
    let finished = child::run(&mut command, programs.folder(), child::STUCK)?;
    let time = match case.time {
        Time::Whole => nanoseconds(finished.wall),
        Time::Printed(name) => {
            let mut samples = Samples::default();
            let all = samples.add_lines(&finished.stdout);
            let summary = samples.summary(name).filter(|_| all);
            summary.ok_or("printed something that is not a measurement")?.median
        }
    };
    Ok(TimedRun { time, processors: nanoseconds(finished.processors) })
}

fn recorded(file: &Path) -> Result<RecordedRun, String> {
    let open = File::open(file).map_err(|error| error.to_string())?;
    let bytes = open.metadata().map_err(|error| error.to_string())?.len();
    let recording =
        gondwana_recording::read(std::io::BufReader::new(open)).map_err(|error| error.to_string())?;
    if let Some(cut) = recording.cut {
        return Err(format!("the recording is not whole: {cut}"));
    }
    let mut nodes: BTreeMap<u16, Noted> = BTreeMap::new();
    for (node, end) in &recording.ended {
        let noted = nodes.entry(*node).or_default();
        noted.transactions += end.lost;
        noted.times += end.lost;
    }
    for (node, interval) in &recording.intervals {
        let noted = nodes.entry(*node).or_default();
        interval.rows.iter().for_each(|row| noted.add(row.count, 0));
    }
    for (node, interval) in &recording.stretches {
        let noted = nodes.entry(*node).or_default();
        interval.stretches.iter().for_each(|it| noted.add(it.row.count, it.parts));
    }
    Ok(RecordedRun { nodes, bytes })
}
