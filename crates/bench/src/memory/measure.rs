//! Measuring one case: a process, or a run of nodes, that does nothing else.

use super::case::{Kernel, MemoryCase};
use super::setup::MemorySetup;
use crate::child;
use crate::programs::Programs;
use crate::samples::{Samples, Summary};
use gondwana_host::UnmetRequest;
use gondwana_memory::PAGE_SIZE;
use gondwana_topology::{NodeId, ProcessorId, ProcessorSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// The slowest speed with which a run still gets on: the limit of its time is meant for one that is stuck.
const SLOWEST_BYTES_PER_SECOND: u64 = 10 << 20;

/// What came of a case.
#[derive(Clone, Debug)]
pub(super) struct MeasuredMemory {
    /// What a pass does: bytes that are copied, read or written, or lines that are gone to.
    pub work: u64,
    /// Pages that are worked on.
    pub pages: usize,
    /// Nanoseconds of the first pass, until everybody may know what was written.
    pub first: u64,
    /// Nanoseconds of each pass after it.
    pub again: Summary,
    /// Where everything was; nothing for clusters, whose program refuses to run anywhere else.
    pub places: Option<Places>,
}

/// Where threads and pages were found, which is where they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Places {
    /// The threads' processors.
    pub processors: ProcessorSet,
    /// The pages on each node; nothing if the kernel refuses to count.
    pub pages: Option<BTreeMap<NodeId, usize>>,
}

/// Measures a case. The error is for people: why there is nothing, or nothing that could be believed.
pub(super) fn measure(
    setup: &MemorySetup,
    programs: &Programs,
    case: MemoryCase,
) -> Result<MeasuredMemory, String> {
    let pages_each = setup.pages_each(case.threads);
    let pages_of_array = pages_each * case.threads as u64;
    let pages = usize::try_from(pages_of_array).map_err(|error| error.to_string())? * case.kernel.arrays();
    let (mut command, processors) = match setup.cluster {
        Some(nodes) => (on_cluster(nodes)?, None),
        None => {
            let processors = setup.processors(case.node, case.threads).map_err(|failure| failure.message)?;
            (on_host(&processors, case.memory)?, Some(processors))
        }
    };
    let (nodes, home, at) = setup.cluster.map_or((1, 0, 0), |nodes| (nodes, case.memory.0, case.node.0));
    command.arg(programs.path("memory")).arg(case.kernel.argument());
    command.args(
        [pages_each, case.threads as u64, nodes.into(), home.into(), at.into()]
            .map(|number| number.to_string()),
    );
    let limit = child::STUCK + Duration::from_secs((pages * PAGE_SIZE) as u64 / SLOWEST_BYTES_PER_SECOND);
    let finished = child::run(&mut command, programs.folder(), limit)?;
    let (samples, found) = parse(&finished.stdout).ok_or("printed something that is not a measurement")?;
    if let Some(processors) = &processors {
        let asked = Places {
            processors: processors.iter().copied().collect(),
            pages: Some(BTreeMap::from([(case.memory, pages)])),
        };
        check(&asked, &found)?;
    }
    let summary = |name| samples.summary(name).ok_or_else(|| format!("no time of {name}"));
    let of_page = if case.kernel == Kernel::Chase { 1 } else { PAGE_SIZE as u64 };
    let places = processors.map(|_| found);
    Ok(MeasuredMemory {
        work: pages_of_array * of_page,
        pages,
        first: summary("first")?.median,
        again: summary("again")?,
        places,
    })
}

fn gondwana() -> Result<Command, String> {
    std::env::current_exe().map(Command::new).map_err(|error| error.to_string())
}

/// Runs what follows with its threads on these processors, in their order, and memory of this node only.
fn on_host(processors: &[ProcessorId], memory: NodeId) -> Result<Command, String> {
    let all: ProcessorSet = processors.iter().copied().collect();
    let mut command = gondwana()?;
    command.args(["exec", "--rset", &format!("proc:{all}|mem:{memory}")]);
    if processors.len() > 1 {
        let each: Vec<String> = processors.iter().map(|processor| format!("proc:{processor}")).collect();
        command.args(["--threads", &each.join(";")]);
    }
    command.arg("--");
    Ok(command)
}

/// Runs what follows on so many nodes.
fn on_cluster(nodes: u16) -> Result<Command, String> {
    let mut command = gondwana()?;
    command.args(["run", "-n", &nodes.to_string(), "--threads", "round-robin", "--"]);
    Ok(command)
}

/// What the measuring program prints: times, and on one node where it found its threads and pages.
fn parse(text: &str) -> Option<(Samples, Places)> {
    let (mut samples, mut places) = (Samples::default(), Places::default());
    for line in text.lines() {
        match *line.split(' ').collect::<Vec<_>>() {
            ["processor", number] => {
                places.processors.insert(ProcessorId(number.parse().ok()?));
            }
            ["pages", node, count] => {
                let pages = places.pages.get_or_insert_default();
                pages.insert(NodeId(node.parse().ok()?), count.parse().ok()?);
            }
            ["first" | "again", _] if samples.add_lines(line) => {}
            _ => return None,
        }
    }
    Some((samples, places))
}

/// What was found must be what was asked for.
fn check(asked: &Places, found: &Places) -> Result<(), String> {
    if found.processors != asked.processors {
        return Err(format!(
            "threads ran on processors {} instead of {}",
            found.processors, asked.processors
        ));
    }
    let (Some(asked), Some(found)) = (&asked.pages, &found.pages) else { return Ok(()) };
    match asked.iter().find(|(node, asked)| found.get(node) != Some(asked)) {
        None => Ok(()),
        Some((&node, &asked)) => {
            let (found, free) =
                (found.get(&node).copied().unwrap_or(0), gondwana_host::sysfs::available_memory(node));
            Err(UnmetRequest::Missing { node, asked, found, free }.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(processors: &str, pages: &[(u16, usize)]) -> Places {
        let pages: BTreeMap<_, _> = pages.iter().map(|&(node, count)| (NodeId(node), count)).collect();
        Places { processors: processors.parse().unwrap(), pages: Some(pages) }
    }

    #[test]
    fn times_and_places_are_read() {
        let (samples, found) =
            parse("first 9\nagain 5\nagain 7\nprocessor 2\nprocessor 0\npages 1 40\n").unwrap();
        assert_eq!(samples.summary("first").unwrap().median, 9);
        assert_eq!(samples.summary("again").unwrap().samples, 2);
        assert_eq!(found, places("0,2", &[(1, 40)]));
        assert_eq!(parse("first 9\n").unwrap().1, Places::default());
    }

    #[test]
    fn other_lines_are_no_measurement() {
        for text in ["first\n", "processor x\n", "pages 1\n", "pages 1 -2\n", "hello world\n"] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_elsewhere_is_said() {
        let asked = places("0-1", &[(250, 40)]);
        assert_eq!(check(&asked, &asked), Ok(()));
        assert_eq!(check(&asked, &Places { pages: None, ..asked.clone() }), Ok(()));
        let refused = |found| check(&asked, &found).unwrap_err();
        assert_eq!(refused(places("0", &[(250, 40)])), "threads ran on processors 0 instead of 0-1");
        assert_eq!(refused(places("0-1", &[(0, 3), (250, 37)])), "node 250 has 37 of 40 pages asked for");
        assert_eq!(refused(places("0-1", &[(0, 40)])), "node 250 has 0 of 40 pages asked for");
    }
}
