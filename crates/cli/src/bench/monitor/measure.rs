//! Running a program with the monitor and without.

use super::case::{Case, Time};
use crate::bench::child;
use crate::bench::programs::{OnNodes, Programs};
use crate::bench::samples::Samples;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Nanoseconds that count.
    pub time: u64,
    /// Nanoseconds that all processors together have spent on it.
    pub processors: u64,
}

/// A run without the monitor and the next one with it, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Without.
    pub without: Run,
    /// With.
    pub with: Run,
}

impl Pair {
    /// Time with the monitor : time without it.
    pub fn ratio(&self) -> f64 {
        self.with.time as f64 / self.without.time.max(1) as f64
    }
}

/// What a recording holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Of each node, how many transactions it has noted, and in how many rows they were written down.
    pub nodes: BTreeMap<u16, (u64, u64)>,
    /// The length of the file.
    pub bytes: u64,
}

/// Runs the case once each way; without the monitor first if `without_first`.
pub fn pair(
    case: &Case,
    nodes: u16,
    programs: &Programs,
    without_first: bool,
) -> Result<(Pair, Recorded), String> {
    let file = programs.folder().join("recording");
    let first = without_first.then(|| run(case, nodes, programs, None)).transpose()?;
    let with = run(case, nodes, programs, Some(&file))?;
    let without = first.map_or_else(|| run(case, nodes, programs, None), Ok)?;
    let recorded = recorded(&file)?;
    std::fs::remove_file(&file).map_err(|error| error.to_string())?;
    Ok((Pair { without, with }, recorded))
}

fn run(case: &Case, nodes: u16, programs: &Programs, monitor: Option<&Path>) -> Result<Run, String> {
    let is_workload = case.is_workload();
    let mut command =
        programs.command(case.program, case.arguments, is_workload, Some(OnNodes { nodes, monitor }))?;
    if is_workload {
        command.args(["-p", &nodes.to_string()]);
    }
    let finished = child::run(&mut command, programs.folder(), child::STUCK)?;
    let time = match case.time {
        Time::Whole => finished.wall.as_nanos() as u64,
        Time::Printed(name) => {
            let mut samples = Samples::default();
            let all = samples.add_lines(&finished.stdout);
            let summary = samples.summary(name).filter(|_| all);
            summary.ok_or("printed something that is not a measurement")?.median
        }
    };
    Ok(Run { time, processors: finished.processors.as_nanos() as u64 })
}

fn recorded(file: &Path) -> Result<Recorded, String> {
    let open = File::open(file).map_err(|error| error.to_string())?;
    let bytes = open.metadata().map_err(|error| error.to_string())?.len();
    let recording =
        gondwana_recording::read(std::io::BufReader::new(open)).map_err(|error| error.to_string())?;
    if let Some(cut) = recording.cut {
        return Err(format!("the recording is not whole: {cut}"));
    }
    let mut nodes: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for (node, end) in &recording.ended {
        nodes.entry(*node).or_default().0 += end.lost;
    }
    for (node, _, row) in recording.rows() {
        let (transactions, rows) = nodes.entry(node).or_default();
        *transactions += u64::from(row.count);
        *rows += 1;
    }
    Ok(Recorded { nodes, bytes })
}
