//! Running a program natively and on nodes.

use super::case::AppCase;
use crate::child::{self, Finished, STUCK, Unsuccessful};
use crate::figures::own_time;
use crate::programs::{OnNodes, Programs};
use crate::samples::{Samples, Summary};
use gondwana_launcher::run::options::Fabric;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// What all programs have in common.
#[derive(Clone, Debug)]
pub(super) struct AppSetup {
    /// Nodes, each with one thread.
    pub nodes: u16,
    /// Threads of native runs.
    pub native_threads: u16,
    /// How nodes talk, one after the other.
    pub fabrics: Vec<Fabric>,
    /// How often each is timed, and the native run.
    pub rounds: usize,
    /// Runs that take more than so many times the native one are ended.
    pub limit: u32,
    /// Whether the programs' small sizes are run.
    pub small: bool,
}

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Times {
    /// From the start of the command to its end.
    pub whole: Summary,
    /// Of the part that threads work on, as the program tells it.
    pub own: Summary,
}

/// What came of runs on nodes.
#[derive(Clone, Debug)]
pub(super) enum OnFabric {
    /// It gave the native result each time; the counters are of the run that was not timed.
    Timed {
        /// The times.
        times: Times,
        /// All counters, as `--stats` writes them.
        counters: Box<Value>,
    },
    /// A run was ended after so long.
    TooSlow(Duration),
    /// In words for people.
    Failed(String),
}

/// What came of a program.
#[derive(Clone, Debug)]
pub(super) struct MeasuredApp {
    /// Natively.
    pub native: Times,
    /// On nodes, in the order of [`Setup::fabrics`].
    pub on_nodes: Vec<(Fabric, OnFabric)>,
}

impl MeasuredApp {
    /// True if nothing has failed. What was too slow is a figure, too.
    pub(super) fn is_complete(&self) -> bool {
        !self.on_nodes.iter().any(|(_, on)| matches!(on, OnFabric::Failed(_)))
    }
}

/// Runs that take less than this are never too slow: of short programs the start would be most of it.
const LEAST_LIMIT: Duration = Duration::from_secs(5);

/// The names of a run's two times.
const WHOLE: &str = "whole";
const OWN: &str = "own";

/// A fabric that is being measured.
struct Course {
    fabric: Fabric,
    samples: Samples,
    counters: Value,
    ended: Option<OnFabric>,
}

/// Measures a program. The error says why it does not run natively.
pub(super) fn measure(case: &AppCase, setup: &AppSetup, programs: &Programs) -> Result<MeasuredApp, String> {
    let runs = Runs { case, setup, programs };
    eprintln!("gondwana: {}: first runs", case.name);
    let first = runs.native(STUCK)?;
    let result = first.stdout;
    let limit = (first.wall * setup.limit).clamp(LEAST_LIMIT, STUCK);
    let mut courses: Vec<_> =
        setup.fabrics.iter().map(|&fabric| runs.first(fabric, &result, limit)).collect();
    let mut native = Samples::default();
    for round in 1..=setup.rounds {
        eprintln!("gondwana: {}: {round} of {}", case.name, setup.rounds);
        add(&mut native, &runs.native(STUCK)?)?;
        for course in courses.iter_mut().filter(|course| course.ended.is_none()) {
            let ran = runs.on(course.fabric, &result, limit, None);
            course.ended = ran.and_then(|ran| add(&mut course.samples, &ran).map_err(OnFabric::Failed)).err();
        }
    }
    let on_nodes = courses.into_iter().map(|course| (course.fabric, course.end())).collect();
    Ok(MeasuredApp { native: times(&native).ok_or("no rounds")?, on_nodes })
}

impl Course {
    fn end(self) -> OnFabric {
        match (self.ended, times(&self.samples)) {
            (Some(ended), _) => ended,
            (None, Some(times)) => OnFabric::Timed { times, counters: Box::new(self.counters) },
            (None, None) => OnFabric::Failed("no rounds".to_owned()),
        }
    }
}

fn add(samples: &mut Samples, ran: &Finished) -> Result<(), String> {
    samples.add_time(WHOLE, ran.wall);
    samples.add(OWN, own_time(&ran.stderr).ok_or("did not tell its time")?);
    Ok(())
}

fn times(samples: &Samples) -> Option<Times> {
    Some(Times { whole: samples.summary(WHOLE)?, own: samples.summary(OWN)? })
}

/// Runs of one program.
struct Runs<'a> {
    case: &'a AppCase,
    setup: &'a AppSetup,
    programs: &'a Programs,
}

impl Runs<'_> {
    fn native(&self, limit: Duration) -> Result<Finished, String> {
        let ran = self.run(None, self.setup.native_threads, limit);
        ran.map_err(|why| format!("natively: {}", String::from(why)))
    }

    /// The first run, which is not timed.
    fn first(&self, fabric: Fabric, result: &str, limit: Duration) -> Course {
        let file = self.programs.folder().join("counters");
        let counters = self.on(fabric, result, limit, Some(&file)).and_then(|_| {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
            let json = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
            json.map_err(|why| OnFabric::Failed(format!("its counters: {why}")))
        });
        let (counters, ended) = match counters {
            Ok(counters) => (counters, None),
            Err(ended) => (Value::Null, Some(ended)),
        };
        Course { fabric, samples: Samples::default(), counters, ended }
    }

    /// A run on nodes, which must give the native result.
    fn on(
        &self,
        fabric: Fabric,
        result: &str,
        limit: Duration,
        stats: Option<&Path>,
    ) -> Result<Finished, OnFabric> {
        let nodes = self.setup.nodes;
        let on = OnNodes { fabric: Some(fabric.name()), stats, ..OnNodes::new(nodes) };
        let ran = self.run(Some(on), nodes, limit).map_err(|why| match why {
            Unsuccessful::Stuck(limit) => OnFabric::TooSlow(limit),
            Unsuccessful::Failed(why) => OnFabric::Failed(why),
        })?;
        if ran.stdout == result {
            return Ok(ran);
        }
        let (printed, native) = (ran.stdout.trim_end(), result.trim_end());
        Err(OnFabric::Failed(format!("printed '{printed}', natively '{native}'")))
    }

    fn run(&self, on: Option<OnNodes<'_>>, threads: u16, limit: Duration) -> Result<Finished, Unsuccessful> {
        let AppCase { program, kind, size, .. } = self.case;
        let size = if self.setup.small { &[] } else { *size };
        let mut command = self
            .programs
            .command(program, &[*kind, size].concat(), true, on)
            .map_err(Unsuccessful::Failed)?;
        command.args(["-p", &threads.to_string()]);
        child::run(&mut command, self.programs.folder(), limit)
    }
}
