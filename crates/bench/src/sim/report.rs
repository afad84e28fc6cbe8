//! The simulator beside cachegrind, as a table and as JSON.

use super::case::SimCase;
use super::measure::{MeasuredSim, SimSetup, UnderCachegrind};
use crate::samples::Summary;
use gondwana_console::columns::{Side, columns};
use serde_json::{Value, json};

/// What came of a program, or why it was not measured.
pub(super) type SimOutcome = (SimCase, Result<MeasuredSim, String>);

/// Millions of something in a second, by the least time.
fn rate(count: u64, time: Summary) -> f64 {
    count as f64 * 1000.0 / time.min.max(1) as f64
}

impl MeasuredSim {
    /// Million accesses in a second that the simulator simulates.
    fn simulated_rate(&self) -> f64 {
        rate(self.accesses, self.simulated)
    }

    /// The bound: million accesses in a second that the native program makes.
    fn bound(&self) -> f64 {
        rate(self.accesses, self.native)
    }

    /// What an access costs more than natively, in nanoseconds.
    fn cost(&self) -> f64 {
        (self.simulated.min as f64 - self.native.min as f64) / self.accesses.max(1) as f64
    }

    /// How many times as many accesses in a second as cachegrind's references.
    fn ratio(&self, cachegrind: &UnderCachegrind) -> f64 {
        self.simulated_rate() / cachegrind.rate()
    }
}

impl UnderCachegrind {
    /// Million references in a second.
    fn rate(&self) -> f64 {
        rate(self.references, self.time)
    }
}

const HEADING: [&str; 8] = [
    "program",
    "accesses, million",
    "bound, million/s",
    "simulated, million/s",
    "ns for an access",
    "references, million",
    "cachegrind, million/s",
    "ratio",
];

/// A line for each program, and what the columns are.
pub(super) fn table(setup: &SimSetup, load: Option<f64>, outcomes: &[SimOutcome]) -> String {
    let mut lines = vec![HEADING.map(str::to_owned).to_vec()];
    for (case, outcome) in outcomes {
        if let Ok(measured) = outcome {
            lines.push(cells(case, measured));
        }
    }
    let sides: Vec<Side> = [Side::Left].into_iter().chain([Side::Right; 7]).collect();
    let load = load.map_or_else(String::new, |load| format!(", {load} threads wanted to run before"));
    let small = if setup.small { ", small sizes" } else { "" };
    let plural = if setup.rounds == 1 { "" } else { "s" };
    let mut text = format!("{} round{plural}{small}{load}\n\n{}\n", setup.rounds, columns(&sides, &lines));
    text += "\
accesses, references  loads and stores that the simulator saw; reads and writes of data that cachegrind saw, libraries' too
bound                 the same accesses in a second of the native program, which makes several at once by vector instructions
million/s             in a second of processor time, the least of the rounds, with the start of the command
ratio                 the simulator's accesses : cachegrind's references in a second
";
    if let Ok(valgrind) = &setup.valgrind {
        text += &format!(
            "cachegrind            {} --tool=cachegrind --cache-sim=yes: one processor without coherence, and the caches \
             of instructions\n",
            valgrind.version
        );
    }
    let width = outcomes.iter().map(|(case, _)| case.name.len()).max().unwrap_or(0);
    for (case, outcome) in outcomes {
        let SimCase { name, machine, what, .. } = case;
        match outcome {
            Err(why) => text += &format!("{name:<width$}  not measured: {why}\n"),
            Ok(measured) => {
                // What a program does is told with its size, which small runs have not.
                if !setup.small {
                    text += &format!("{name:<width$}  {what}; on {machine}\n");
                }
                if let Err(why) = &measured.cachegrind {
                    text += &format!("{name:<width$}  not measured under cachegrind: {why}\n");
                }
            }
        }
    }
    text
}

fn cells(case: &SimCase, measured: &MeasuredSim) -> Vec<String> {
    let million = |count: u64| format!("{:.1}", count as f64 / 1e6);
    let under = measured.cachegrind.as_ref().ok();
    let or_none = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    vec![
        case.name.to_owned(),
        million(measured.accesses),
        format!("{:.0}", measured.bound()),
        format!("{:.1}", measured.simulated_rate()),
        format!("{:.1}", measured.cost()),
        or_none(under.map(|under| million(under.references))),
        or_none(under.map(|under| format!("{:.1}", under.rate()))),
        or_none(under.map(|under| format!("{:.2} x", measured.ratio(under)))),
    ]
}

/// All figures; times in nanoseconds of processor time.
pub(super) fn json(machine: Value, setup: &SimSetup, outcomes: &[SimOutcome]) -> Value {
    let programs: Vec<Value> = outcomes
        .iter()
        .map(|(case, outcome)| {
            let mut row = json!({ "name": case.name, "machine": case.machine, "what": case.what });
            match outcome {
                Err(why) => row["not_measured"] = json!(why),
                Ok(measured) => fill(&mut row, measured),
            }
            row
        })
        .collect();
    json!({
        "machine": machine,
        "rounds": setup.rounds,
        "small": setup.small,
        "valgrind": setup.valgrind.as_ref().ok().map(|valgrind| &valgrind.version),
        "programs": programs,
    })
}

fn fill(row: &mut Value, measured: &MeasuredSim) {
    row["accesses"] = json!(measured.accesses);
    row["native"] = json!({ "nanoseconds": measured.native });
    row["bound_per_second"] = json!(measured.bound() * 1e6);
    row["simulated"] =
        json!({ "nanoseconds": measured.simulated, "accesses_per_second": measured.simulated_rate() * 1e6 });
    row["nanoseconds_for_an_access"] = json!(measured.cost());
    match &measured.cachegrind {
        Ok(under) => {
            row["cachegrind"] = json!({
                "references": under.references,
                "nanoseconds": under.time,
                "references_per_second": under.rate() * 1e6,
            });
            row["ratio"] = json!(measured.ratio(under));
        }
        Err(why) => row["cachegrind"] = json!({ "not_measured": why }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{case, measure};
    use super::*;
    use std::ffi::OsStr;

    fn summary(min: u64) -> Summary {
        Summary { min, median: min * 2, p90: min * 3, samples: 3 }
    }

    #[test]
    fn rates_are_of_the_least_times() {
        let lack = "valgrind cannot be run".to_owned();
        let setup =
            SimSetup { rounds: 3, small: false, valgrind: measure::find_valgrind(OsStr::new("/nowhere")) };
        let measured = MeasuredSim {
            accesses: 40_000_000,
            native: summary(20_000_000),
            simulated: summary(500_000_000),
            cachegrind: Ok(UnderCachegrind { references: 50_000_000, time: summary(1_000_000_000) }),
        };
        let without = MeasuredSim { cachegrind: Err(lack.clone()), ..measured.clone() };
        let cases = case::all();
        let outcomes = [
            (cases[0], Ok(measured)),
            (cases[1], Ok(without)),
            (cases[2], Err("natively: stuck for 60 s".to_owned())),
        ];
        let text = table(&setup, None, &outcomes);
        let line = |number: usize| -> Vec<&str> {
            text.lines().nth(number).unwrap().split("  ").map(str::trim).filter(|c| !c.is_empty()).collect()
        };
        assert_eq!(line(3), ["chase", "40.0", "2000", "80.0", "12.0", "50.0", "50.0", "1.60 x"], "{text}");
        assert_eq!(line(4), ["lu-serial", "40.0", "2000", "80.0", "12.0", "-", "-", "-"], "{text}");
        assert!(
            text.contains("lu-serial  not measured under cachegrind: valgrind cannot be run\n"),
            "{text}"
        );
        assert!(text.contains("lu         not measured: natively: stuck for 60 s\n"), "{text}");
        let json = json(Value::Null, &setup, &outcomes);
        assert_eq!(json["programs"][0]["simulated"]["accesses_per_second"], 80e6);
        assert_eq!(json["programs"][0]["ratio"], 1.6);
        assert_eq!(json["programs"][1]["cachegrind"]["not_measured"], Value::from(lack));
        assert_eq!(json["valgrind"], Value::Null);
    }
}
