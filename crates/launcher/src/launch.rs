//! `gondwana run`: a program on several nodes.

use crate::atomics;
use crate::exit;
use crate::hosts;
use crate::limits;
use crate::process::spawn::ProcessImage;
use crate::program;
use crate::random::random;
use crate::run::job::Job;
use crate::run::options::{self, Fabric, RunOptions};
use crate::run::policies::Policies;
use crate::run::recording_writer::RecordingWriter;
use crate::run::{common, expected, homes};
use crate::script;
use crate::stats::{AtomicInstructions, Summary};
use gondwana_console::clean;
use gondwana_console::create::Readers;
use gondwana_console::failure::Failure;
use gondwana_console::output::{self, Output};
use gondwana_control::{Consistency, Homes, ORDERED, PlacedHomes, ProtocolInfo, Watch};
use std::cell::Cell;
use std::process::ExitCode;
use std::time::Instant;

/// Runs a program with these options, and ends as the program does.
pub fn run(mut options: RunOptions) -> Result<ExitCode, Failure> {
    let nodes = options.nodes()?;
    let fabric = options.fabric()?;
    let policies = Policies::of(&options)?;
    let monitoring = options.monitoring()?;
    let asked = options.protocol()?;
    let name = &*options.program_name()?.to_owned();
    options.program = script::interpreted(options.program)?;
    let found = &options.program[0];
    let program = program::find(found)?;
    program::loadable(&found.to_string_lossy(), &program.image)?;
    program::linked(&found.to_string_lossy(), &program)?;
    let image = ProcessImage::new(&program.path, &options.program, std::env::vars_os().collect())
        .map_err(|error| Failure::system("passing on arguments and environment", &error))?;
    let alone = nodes == 1 && options.hosts.is_empty();
    if alone && options.monitor.is_some() {
        eprintln!("gondwana: --monitor: a run on one node has no remote accesses to record");
    }
    if alone && options.stats.is_none() {
        let error = image.replace_process();
        return Err(Failure::not_runnable(format!("{}: {error}", name.display())));
    }
    limits::survive_full_files();
    if !alone && options.hosts.is_empty() {
        limits::check(usize::from(nodes))?;
    }
    let policies = policies.with_plan(&options, &program)?;
    let Choice { protocol, locked, watched, found, reason } = if alone {
        Choice::of(Consistency::Sc.protocol(), "one node: the program runs as it is")
    } else {
        choose(&options, asked, fabric, &program)?
    };
    if protocol.name == ORDERED.name && fabric == Fabric::Shm {
        return Err(Failure::usage(format!(
            "--protocol {} orders pages over tcp only; say --fabric tcp, or --consistency sc",
            protocol.name
        )));
    }
    if protocol.placed == PlacedHomes::Fixed && policies.homes != Homes::default() {
        let name = protocol.name;
        return Err(Failure::usage(format!(
            "--protocol {name} cannot place memory; leave it out, or --memory and what --plan says about memory"
        )));
    }
    let file = options.stats.iter().flatten().next();
    let file = file.map(|path| Output::open("--stats", path, Readers::User)).transpose()?;
    let writer = options
        .recording(name)
        .filter(|_| !alone)
        .map(|path| RecordingWriter::open("--monitor", &path))
        .transpose()?;
    // Where the consistency is asked for, only the table wants to know.
    let found = match found {
        None if options.stats.is_some() && !alone => {
            atomics::of_program(&program, false).ok().map(|atomics| atomics.count())
        }
        found => found,
    };
    let common_after = common::after(&options, protocol, fabric, &policies, &program, monitoring.is_some());
    let counted = found.map(|found| AtomicInstructions { found, locked: locked.len() });
    let start = Instant::now();
    let run = u64::from_ne_bytes(random()?);
    let job = Job {
        options: &options,
        run,
        nodes,
        fabric,
        protocol,
        locked,
        watched,
        reason: reason.clone(),
        common_after,
        policies,
        path: &program.path,
        monitoring,
        writer: Cell::new(writer),
    };
    let (outcome, mechanism) = if alone {
        (job.alone(&image)?, "native")
    } else if options.hosts.is_empty() {
        job.here(&image)?
    } else {
        hosts::run(&job, &program)?
    };
    if let Some(before) = job.policies.before() {
        match expected::traffic(&outcome.stats) {
            Some(now) => {
                eprintln!("gondwana: {}", expected::comparison(now, before, job.policies.expected()))
            }
            None => eprintln!("gondwana: plan: not every node has counted what it asked for"),
        }
    }
    if options.stats.is_some() {
        let summary = Summary {
            program: options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            fabric: fabric.name(),
            consistency: protocol.consistency.name(),
            reason,
            atomics: counted,
            mechanism,
            seconds: start.elapsed().as_secs_f64(),
            nodes: homes::by_node(outcome.stats),
        };
        eprint!("{}", clean::text(&summary.to_table()));
        if let Some(file) = file {
            file.write(&output::json(&summary.to_json()))?;
        }
    }
    Ok(exit::like(outcome.end))
}

/// The protocol of a run, and why.
struct Choice {
    protocol: &'static ProtocolInfo,
    /// Atomic instructions that are executed under a lock.
    locked: Vec<u64>,
    /// Instructions with which threads synchronise, of which nodes are to know.
    watched: Vec<Watch>,
    /// How many atomic instructions the program and its own libraries have, if it is known.
    found: Option<usize>,
    /// The reason for its consistency.
    reason: String,
}

impl Choice {
    fn of(protocol: &'static ProtocolInfo, reason: impl Into<String>) -> Self {
        Self { protocol, locked: vec![], watched: vec![], found: None, reason: reason.into() }
    }
}

fn choose(
    options: &RunOptions,
    asked: Option<&'static ProtocolInfo>,
    fabric: Fabric,
    program: &program::Program,
) -> Result<Choice, Failure> {
    let watched = |reason: &str| {
        let watched = atomics::watch::of_program(program)?;
        let count: usize = watched.iter().map(|watch| watch.instructions.len()).sum();
        let reason = format!("{reason}; {count} instructions with which threads may synchronise are watched");
        Ok::<_, Failure>(Choice { watched, ..Choice::of(Consistency::C11.protocol(), reason) })
    };
    if let Some(protocol) = asked {
        let reason = format!("{} asked for", protocol.name);
        return if protocol.consistency == Consistency::C11 {
            watched(&reason)
        } else {
            Ok(Choice::of(protocol, reason))
        };
    }
    Ok(match options.consistency {
        options::Consistency::Rc => {
            // Of a program that cannot be searched, the user knows more.
            let atomics = atomics::of_program(program, false).ok();
            let locked = atomics.as_ref().map_or(vec![], |atomics| atomics.of_openmp().to_vec());
            let reason = if locked.is_empty() {
                "asked for"
            } else {
                "asked for; the atomic instructions of an OpenMP program are executed under a lock"
            };
            let found = atomics.map(|atomics| atomics.count());
            Choice { locked, found, ..Choice::of(Consistency::Rc.protocol(), reason) }
        }
        options::Consistency::C11 => watched("asked for")?,
        options::Consistency::Sc => Choice::of(Consistency::Sc.protocol(), "asked for"),
        options::Consistency::Auto => {
            let atomics = atomics::of_program(program, fabric == Fabric::Tcp)?;
            let found = Some(atomics.count());
            if atomics.need_order() {
                return Ok(Choice { found, ..Choice::of(Consistency::Sc.protocol(), atomics.to_string()) });
            }
            // Whether threads synchronise by plain loads and stores cannot be told for certain.
            let (protocol, reason) = match fabric {
                Fabric::Shm => (Consistency::Rc.protocol(), atomics.to_string()),
                Fabric::Tcp => (ORDERED, format!("{atomics}; plain loads and stores are in order")),
            };
            let locked = atomics.reductions().unwrap_or_default().to_vec();
            Choice { locked, found, ..Choice::of(protocol, reason) }
        }
    })
}
