//! Running a program natively, simulated and under cachegrind.

use super::case::SimCase;
use crate::child::{self, Finished, STUCK};
use crate::programs::Programs;
use crate::samples::{Samples, Summary};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// What all programs have in common.
pub(super) struct SimSetup {
    /// How often each is timed.
    pub rounds: usize,
    /// Whether the programs' small sizes are run.
    pub small: bool,
    /// Valgrind, or why there is none.
    pub valgrind: Result<Valgrind, String>,
}

/// A valgrind that can be run.
pub(super) struct Valgrind {
    command: OsString,
    /// What it says of itself.
    pub version: String,
}

/// What was measured of a program.
#[derive(Clone, Debug)]
pub(super) struct MeasuredSim {
    /// Loads and stores that the simulator saw.
    pub accesses: u64,
    /// Nanoseconds of processor time of the native program.
    pub native: Summary,
    /// The same of `gondwana sim`, with its start.
    pub simulated: Summary,
    /// Under cachegrind, or why not.
    pub cachegrind: Result<UnderCachegrind, String>,
}

/// A program under cachegrind.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderCachegrind {
    /// Reads and writes of data that it saw; instructions are not among them.
    pub references: u64,
    /// Nanoseconds of processor time, with its start.
    pub time: Summary,
}

/// The names of the three times.
const NATIVE: &str = "native";
const SIMULATED: &str = "simulated";
const CACHEGRIND: &str = "cachegrind";

/// Finds out whether valgrind can be run.
pub(super) fn find_valgrind(command: &OsStr) -> Result<Valgrind, String> {
    let asked = Command::new(command).arg("--version").stdin(Stdio::null()).output();
    let version = asked.ok().filter(|asked| asked.status.success());
    let version = version.map(|asked| String::from_utf8_lossy(&asked.stdout).trim_end().to_owned());
    let version = version.ok_or_else(|| {
        format!(
            "{} cannot be run: install valgrind, such as by apt-get install valgrind, or name it with --valgrind",
            command.display()
        )
    })?;
    Ok(Valgrind { command: command.to_owned(), version })
}

/// Measures a program. The error says why it does not run natively or simulated.
pub(super) fn measure(case: &SimCase, setup: &SimSetup, programs: &Programs) -> Result<MeasuredSim, String> {
    let runs = Runs { case, arguments: if setup.small { case.small } else { case.arguments }, programs };
    let mut samples = Samples::default();
    let mut accesses = 0;
    let mut references = setup.valgrind.as_ref().map(|_| 0).map_err(Clone::clone);
    for round in 1..=setup.rounds {
        eprintln!("gondwana: {}: {round} of {}", case.name, setup.rounds);
        let native = runs.native().map_err(|why| format!("natively: {why}"))?;
        samples.add_time(NATIVE, native.processors);
        let (ran, seen) = runs.simulated(&native.stdout).map_err(|why| format!("simulated: {why}"))?;
        samples.add_time(SIMULATED, ran.processors);
        accesses = seen;
        if let (Ok(valgrind), Ok(_)) = (&setup.valgrind, &references) {
            references = runs.under_cachegrind(valgrind, &native.stdout).map(|(ran, seen)| {
                samples.add_time(CACHEGRIND, ran.processors);
                seen
            });
        }
    }
    let time = |name| samples.summary(name).ok_or_else(|| "no rounds".to_owned());
    let cachegrind =
        references.and_then(|references| Ok(UnderCachegrind { references, time: time(CACHEGRIND)? }));
    Ok(MeasuredSim { accesses, native: time(NATIVE)?, simulated: time(SIMULATED)?, cachegrind })
}

/// Runs of one program.
struct Runs<'a> {
    case: &'a SimCase,
    arguments: &'a [&'a str],
    programs: &'a Programs,
}

impl Runs<'_> {
    fn native(&self) -> Result<Finished, String> {
        let mut command = Command::new(self.programs.path(self.case.program));
        self.run(command.args(self.arguments), None)
    }

    /// A simulated run and how many accesses it made.
    fn simulated(&self, result: &str) -> Result<(Finished, u64), String> {
        let file = self.programs.folder().join("statistics");
        let gondwana = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(gondwana);
        command.args(["sim", "--machine", self.case.machine, "--json"]).arg(&file).arg("--");
        command.arg(self.programs.simulated_path(self.case.program)).args(self.arguments);
        let ran = self.run(&mut command, Some(result))?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        Ok((ran, accesses(&text).ok_or("its statistics have no counts")?))
    }

    /// A run under cachegrind and how many references to data it made.
    fn under_cachegrind(&self, valgrind: &Valgrind, result: &str) -> Result<(Finished, u64), String> {
        let file = self.programs.folder().join("cachegrind.out");
        let mut option = OsString::from("--cachegrind-out-file=");
        option.push(&file);
        let mut command = Command::new(&valgrind.command);
        command.args(["--tool=cachegrind", "--cache-sim=yes"]).arg(option);
        command.arg(self.programs.path(self.case.program)).args(self.arguments);
        let ran = self.run(&mut command, Some(result))?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        Ok((ran, references(&text).ok_or("cachegrind's file has no counts of reads and writes")?))
    }

    fn run(&self, command: &mut Command, result: Option<&str>) -> Result<Finished, String> {
        let folder: &Path = self.programs.folder();
        let ran = child::run(command, folder, STUCK).map_err(String::from)?;
        match result.filter(|result| *result != ran.stdout) {
            None => Ok(ran),
            Some(native) => {
                Err(format!("printed '{}', natively '{}'", ran.stdout.trim_end(), native.trim_end()))
            }
        }
    }
}

/// Loads and stores in the statistics of a simulated run.
fn accesses(json: &str) -> Option<u64> {
    let statistics: Value = serde_json::from_str(json).ok()?;
    let count = |name: &str| statistics["counters"][name].as_u64();
    Some(count("reads")? + count("writes")?)
}

/// Reads and writes of data in a file of cachegrind: a line names the events, and one has their sums.
fn references(text: &str) -> Option<u64> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let (events, sums) = (line("events:")?, line("summary:")?);
    let count = |wanted: &str| {
        let at = events.split_whitespace().position(|event| event == wanted)?;
        sums.split_whitespace().nth(at)?.parse::<u64>().ok()
    };
    Some(count("Dr")? + count("Dw")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_in_both_files() {
        let text = "desc: D1\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw \nfn=x\n1 2 3\nsummary: 9 8 7 600 5 4 30 2 1\n";
        assert_eq!(references(text), Some(630));
        assert_eq!(references("events: Ir\nsummary: 9\n"), None, "without --cache-sim=yes");
        assert_eq!(references("events: Dr Dw\nsummary: 9\n"), None);
        assert_eq!(accesses(r#"{"counters": {"reads": 5, "writes": 2}}"#), Some(7));
        assert_eq!(accesses("{}"), None);
    }

    #[test]
    fn a_lack_of_valgrind_is_said_with_what_to_do() {
        let why = find_valgrind(OsStr::new("/nowhere/valgrind")).err().unwrap();
        assert!(why.starts_with("/nowhere/valgrind cannot be run: install valgrind"), "{why}");
    }
}
