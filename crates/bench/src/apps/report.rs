//! Programs beside their native runs, as a table and as JSON.

use super::case::{AppCase, Group};
use super::measure::{AppSetup, MeasuredApp, OnFabric, Times};
use super::ratios::geometric_mean;
use crate::report::time;
use crate::samples::nanoseconds;
use gondwana_console::columns::{Side, columns};
use gondwana_launcher::run::options::Fabric;
use serde_json::{Map, Value, json};

/// What came of a program, or why it does not run natively.
pub(super) type AppOutcome = (AppCase, Result<MeasuredApp, String>);

/// The parts of the threads' time that counters tell, for the first fabric.
const PARTS: [&str; 3] = ["user", "protocol", "waiting"];

/// How much longer runs on nodes take than native ones.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratios {
    /// Of the least times from the start of the command to its end.
    whole: f64,
    /// Of the least times of the part that threads work on.
    own: f64,
}

impl Ratios {
    fn new(native: &Times, on_nodes: &Times) -> Self {
        let ratio = |native: u64, on_nodes: u64| on_nodes as f64 / native.max(1) as f64;
        Self {
            whole: ratio(native.whole.min, on_nodes.whole.min),
            own: ratio(native.own.min, on_nodes.own.min),
        }
    }
}

impl MeasuredApp {
    fn on(&self, fabric: Fabric) -> Option<&OnFabric> {
        self.on_nodes.iter().find(|(other, _)| *other == fabric).map(|(_, on)| on)
    }

    fn ratios(&self, fabric: Fabric) -> Option<Ratios> {
        match self.on(fabric)? {
            OnFabric::Timed { times, .. } => Some(Ratios::new(&self.native, times)),
            OnFabric::TooSlow(_) | OnFabric::Failed(_) => None,
        }
    }

    fn is_too_slow(&self, fabric: Fabric) -> bool {
        matches!(self.on(fabric), Some(OnFabric::TooSlow(_)))
    }

    /// Which part of their time the threads spent with each of [`PARTS`], in the first fabric's run that was counted.
    fn parts(&self) -> Option<[f64; 3]> {
        let (_, OnFabric::Timed { counters, .. }) = self.on_nodes.first()? else { return None };
        let times = counters["total"]["time_us"].as_object()?;
        let all: f64 = times.values().filter_map(Value::as_f64).sum();
        Some(PARTS.map(|part| times.get(part).and_then(Value::as_f64).unwrap_or(0.0) / all.max(1.0)))
    }
}

/// The geometric mean of some programs on one fabric.
struct Mean {
    ratios: Option<Ratios>,
    programs: usize,
    too_slow: usize,
}

fn mean<'a>(outcomes: impl Iterator<Item = &'a AppOutcome> + Clone, fabric: Fabric) -> Mean {
    let measured = outcomes.filter_map(|(_, outcome)| outcome.as_ref().ok());
    let ratios: Vec<Ratios> = measured.clone().filter_map(|it| it.ratios(fabric)).collect();
    let mean = |of: fn(&Ratios) -> f64| geometric_mean(ratios.iter().map(of));
    Mean {
        ratios: mean(|it| it.whole).zip(mean(|it| it.own)).map(|(whole, own)| Ratios { whole, own }),
        programs: ratios.len(),
        too_slow: measured.filter(|it| it.is_too_slow(fabric)).count(),
    }
}

fn in_group(outcomes: &[AppOutcome], group: Group) -> impl Iterator<Item = &AppOutcome> + Clone {
    outcomes.iter().filter(move |(case, _)| case.group == group)
}

/// A line for each program, and the means.
pub(super) fn table(setup: &AppSetup, load: Option<f64>, outcomes: &[AppOutcome]) -> String {
    let mut heading = vec!["program".to_owned(), "native".to_owned()];
    for fabric in &setup.fabrics {
        heading.extend([fabric.name(), "ratio", "own"].map(str::to_owned));
    }
    heading.extend(PARTS.map(str::to_owned));
    let mut sides = vec![Side::Right; heading.len()];
    sides[0] = Side::Left;
    let mut lines = vec![heading];
    for group in Group::ALL {
        let programs = in_group(outcomes, group);
        let cells = programs
            .clone()
            .filter_map(|(case, outcome)| Some(cells(case, outcome.as_ref().ok()?, &setup.fabrics)));
        lines.extend(cells);
        if programs.clone().count() > 1 {
            lines.push(mean_cells(&format!("= {group}"), programs, &setup.fabrics));
        }
    }
    if outcomes.len() > 1 {
        lines.push(mean_cells("= all", outcomes.iter(), &setup.fabrics));
    }
    let load = load.map_or_else(String::new, |load| format!(", {load} threads wanted to run before"));
    let AppSetup { nodes, native_threads, rounds, .. } = setup;
    let small = if setup.small { ", small sizes" } else { "" };
    let plural = if *native_threads == 1 { "" } else { "s" };
    let mut text = format!(
        "{nodes} nodes, natively {native_threads} thread{plural}, {rounds} rounds{small}{load}\n\n{}\n",
        columns(&sides, &lines)
    );
    text += &legend(setup, outcomes);
    text
}

fn legend(setup: &AppSetup, outcomes: &[AppOutcome]) -> String {
    let first = setup.fabrics.first().map_or("", |fabric| fabric.name());
    let mut text = format!(
        "\
native, {}  the least time from the start of the command to its end
ratio        that time : the native one; own: the same of the part that threads work on
=            geometric means of the ratios; programs that took more than {} times the native time are not in them
{}  of the threads' time over {first}
",
        setup.fabrics.iter().map(|fabric| fabric.name()).collect::<Vec<_>>().join(", "),
        setup.limit,
        PARTS.join(", "),
    );
    let width = outcomes.iter().map(|(case, _)| case.name.len()).max().unwrap_or(0);
    for (case, outcome) in outcomes {
        let name = case.name;
        match outcome {
            Err(why) => text += &format!("{name:<width$}  not measured: {why}\n"),
            Ok(measured) => {
                // What a program does is told with its size, which small runs have not.
                if !setup.small {
                    text += &format!("{name:<width$}  {}\n", case.what);
                }
                for (fabric, on) in &measured.on_nodes {
                    if let OnFabric::Failed(why) = on {
                        let nodes = setup.nodes;
                        text += &format!(
                            "{name:<width$}  FAILED on {nodes} nodes over {}: {why}\n",
                            fabric.name()
                        );
                    }
                }
            }
        }
    }
    text
}

fn cells(case: &AppCase, measured: &MeasuredApp, fabrics: &[Fabric]) -> Vec<String> {
    let mut cells = vec![case.name.to_owned(), time(measured.native.whole.min)];
    for &fabric in fabrics {
        cells.extend(match measured.on(fabric) {
            Some(OnFabric::Timed { times, .. }) => {
                let ratios = Ratios::new(&measured.native, times);
                [time(times.whole.min), times_native(ratios.whole), times_native(ratios.own)]
            }
            Some(OnFabric::TooSlow(after)) => {
                let least = after.as_nanos() as f64 / measured.native.whole.min.max(1) as f64;
                [
                    format!("> {}", time(nanoseconds(*after))),
                    format!("> {}", times_native(least)),
                    String::new(),
                ]
            }
            Some(OnFabric::Failed(_)) | None => ["FAILED".to_owned(), String::new(), String::new()],
        });
    }
    let parts = measured.parts().map(|parts| parts.map(|part| format!("{:.0} %", 100.0 * part)));
    cells.extend(parts.unwrap_or_default());
    cells
}

fn mean_cells<'a>(
    name: &str,
    outcomes: impl Iterator<Item = &'a AppOutcome> + Clone,
    fabrics: &[Fabric],
) -> Vec<String> {
    let mut cells = vec![name.to_owned(), String::new()];
    for &fabric in fabrics {
        let Mean { ratios, programs, too_slow } = mean(outcomes.clone(), fabric);
        let of = if too_slow > 0 {
            format!("{programs} of {}", programs + too_slow)
        } else {
            programs.to_string()
        };
        let ratio = |of: fn(Ratios) -> f64| ratios.map_or_else(String::new, |it| times_native(of(it)));
        cells.extend([of, ratio(|it| it.whole), ratio(|it| it.own)]);
    }
    cells
}

fn times_native(ratio: f64) -> String {
    let decimals = if ratio < 10.0 { 2 } else { usize::from(ratio < 100.0) };
    format!("{ratio:.decimals$} x")
}

/// All of it, for programs to read; `machine` is what the figures are from.
pub(super) fn json(machine: Value, setup: &AppSetup, outcomes: &[AppOutcome]) -> Value {
    let mut means = Map::new();
    for group in Group::ALL {
        means.insert(group.to_string(), means_json(setup, in_group(outcomes, group)));
    }
    means.insert("all".to_owned(), means_json(setup, outcomes.iter()));
    json!({
        "machine": machine,
        "nodes": setup.nodes,
        "native_threads": setup.native_threads,
        "rounds": setup.rounds,
        "limit": setup.limit,
        "small": setup.small,
        "programs": outcomes.iter().map(|outcome| program_json(setup, outcome)).collect::<Vec<_>>(),
        "geometric_means": means,
    })
}

fn means_json<'a>(setup: &AppSetup, outcomes: impl Iterator<Item = &'a AppOutcome> + Clone) -> Value {
    let one = |&fabric: &Fabric| {
        let Mean { ratios, programs, too_slow } = mean(outcomes.clone(), fabric);
        let [whole, own] = [ratios.map(|it| it.whole), ratios.map(|it| it.own)];
        (
            fabric.name().to_owned(),
            json!({ "whole": whole, "own": own, "programs": programs, "too_slow": too_slow }),
        )
    };
    Value::Object(setup.fabrics.iter().map(one).collect())
}

fn program_json(setup: &AppSetup, (case, outcome): &AppOutcome) -> Value {
    let arguments = if setup.small { case.kind.to_vec() } else { [case.kind, case.size].concat() };
    let mut program = json!({
        "name": case.name,
        "what": case.what,
        "group": case.group.to_string(),
        "program": case.program,
        "arguments": arguments,
    });
    match outcome {
        Err(why) => program["not_measured"] = json!(why),
        Ok(measured) => {
            program["native_nanoseconds"] = json!(measured.native);
            for (fabric, on) in &measured.on_nodes {
                program[fabric.name()] = fabric_json(&measured.native, on);
            }
        }
    }
    program
}

fn fabric_json(native: &Times, on: &OnFabric) -> Value {
    match on {
        OnFabric::Timed { times, counters } => {
            let Ratios { whole, own } = Ratios::new(native, times);
            json!({
                "nanoseconds": times,
                "ratio": { "whole": whole, "own": own },
                "consistency": counters["consistency"],
                "counters": counters["total"],
            })
        }
        OnFabric::TooSlow(after) => json!({ "ended_after_seconds": after.as_secs_f64() }),
        OnFabric::Failed(why) => json!({ "failed": why }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::case;
    use super::*;
    use crate::samples::Summary;
    use std::time::Duration;

    fn times(whole: u64, own: u64) -> Times {
        let [whole, own] = [whole, own].map(|min| Summary { min, median: min, p90: min, samples: 1 });
        Times { whole, own }
    }

    fn timed(whole: u64, own: u64) -> OnFabric {
        let time = json!({ "user": 30, "protocol": 10, "waiting": 60, "message": 0 });
        let counters = json!({ "consistency": "rc", "total": { "time_us": time } });
        OnFabric::Timed { times: times(whole, own), counters: Box::new(counters) }
    }

    fn setup() -> AppSetup {
        AppSetup {
            nodes: 2,
            native_threads: 2,
            fabrics: vec![Fabric::Shm, Fabric::Tcp],
            rounds: 3,
            limit: 100,
            small: false,
        }
    }

    fn outcomes() -> Vec<AppOutcome> {
        let all = case::all();
        let named = |name: &str| *all.iter().find(|case| case.name == name).unwrap();
        let native = times(1_000_000, 800_000);
        let on =
            |shm, tcp| Ok(MeasuredApp { native, on_nodes: vec![(Fabric::Shm, shm), (Fabric::Tcp, tcp)] });
        let slow = OnFabric::TooSlow(Duration::from_millis(150));
        vec![
            (named("sor"), on(timed(2_000_000, 800_000), timed(4_000_000, 1_600_000))),
            (
                named("lu"),
                on(timed(8_000_000, 3_200_000), OnFabric::Failed("printed 'x', natively 'y'".to_owned())),
            ),
            (named("radix"), on(timed(1_500_000, 800_000), slow)),
            (named("deque"), Err("natively: exit status: 1".to_owned())),
        ]
    }

    #[test]
    fn the_table_has_ratios_means_and_lacks() {
        let table = table(&setup(), Some(0.5), &outcomes());
        let line = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(
            table.starts_with("2 nodes, natively 2 threads, 3 rounds, 0.5 threads wanted to run before\n")
        );
        let words = |start: &str| line(start).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words("sor"), "sor 1.00 ms 2.00 ms 2.00 x 1.00 x 4.00 ms 4.00 x 2.00 x 30 % 10 % 60 %");
        assert_eq!(words("lu"), "lu 1.00 ms 8.00 ms 8.00 x 4.00 x FAILED 30 % 10 % 60 %");
        assert_eq!(words("radix"), "radix 1.00 ms 1.50 ms 1.50 x 1.00 x > 150 ms > 150 x 30 % 10 % 60 %");
        assert_eq!(words("= phases"), "= phases 2 4.00 x 2.00 x 1 4.00 x 2.00 x");
        assert_eq!(words("= all"), "= all 3 2.88 x 1.59 x 1 of 2 4.00 x 2.00 x");
        assert!(table.contains("lu     FAILED on 2 nodes over tcp: printed 'x', natively 'y'\n"), "{table}");
        assert!(table.contains("deque  not measured: natively: exit status: 1\n"), "{table}");
    }

    #[test]
    fn json_has_all_of_it() {
        let json = json(json!({}), &setup(), &outcomes());
        assert_eq!(json["programs"][0]["shm"]["ratio"], json!({ "whole": 2.0, "own": 1.0 }));
        assert_eq!(json["programs"][0]["shm"]["counters"]["time_us"]["waiting"], 60);
        assert_eq!(json["programs"][1]["tcp"]["failed"], "printed 'x', natively 'y'");
        assert_eq!(json["programs"][2]["tcp"]["ended_after_seconds"], 0.15);
        assert_eq!(json["programs"][3]["not_measured"], "natively: exit status: 1");
        assert_eq!(json["geometric_means"]["all"]["tcp"]["too_slow"], 1);
        assert_eq!(json["geometric_means"]["atomics"]["shm"]["whole"], Value::Null);
    }
}
