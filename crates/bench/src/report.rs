//! The figures as a table and as JSON.

use super::figures::{Figure, FigureSeries, Target};
use super::machine;
use super::measure::Results;
use super::samples::Summary;
use gondwana_console::columns::{Side, columns};
use gondwana_launcher::run::options::Fabric;
use serde_json::{Value, json};

/// A figure with what was measured.
pub(crate) struct FigureRow<'a> {
    figure: &'a Figure,
    outcome: Result<Measured, String>,
}

struct Measured {
    value: Summary,
    bound: Bound,
}

/// Sums over the parts of a bound, in nanoseconds.
#[derive(Clone, Copy)]
struct Bound {
    min: u64,
    median: u64,
}

impl<'a> FigureRow<'a> {
    /// Looks up what the figure needs.
    pub(crate) fn new(figure: &'a Figure, results: &Results) -> Self {
        let find = |series: &FigureSeries| match results.get(&series.runner) {
            Some(Ok(samples)) => samples
                .summary(series.name)
                .ok_or_else(|| format!("{}: no value of {}", series.runner, series.name)),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("{}: not run", series.runner)),
        };
        let measured = || {
            let value = find(&figure.measured)?;
            let parts = figure.bound.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            let bound = Bound {
                min: parts.iter().map(|part| part.min).sum(),
                median: parts.iter().map(|part| part.median).sum(),
            };
            Ok(Measured { value, bound })
        };
        Self { figure, outcome: measured() }
    }

    /// True if there are values, good or bad.
    pub(crate) fn is_measured(&self) -> bool {
        self.outcome.is_ok()
    }

    fn cells(&self) -> Option<[String; 8]> {
        let Measured { value, bound } = self.outcome.as_ref().ok()?;
        Some([
            self.figure.name.to_owned(),
            time(value.median),
            time(value.min),
            time(value.p90),
            time(bound.median),
            ratio(self.figure.target, value.median, bound.median),
            self.figure.target.to_string(),
            match self.figure.target.is_met(value.median, bound.median) {
                Some(true) => "met".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => String::new(),
            },
        ])
    }

    fn to_json(&self) -> Value {
        let Figure { name, what, bound_what, target, .. } = self.figure;
        let mut row = json!({ "name": name, "what": what, "target": target.to_string() });
        match &self.outcome {
            Ok(Measured { value, bound }) => {
                row["nanoseconds"] = json!(value);
                row["bound"] = json!({ "what": bound_what, "min": bound.min, "median": bound.median });
                row["times_bound"] = json!(value.median as f64 / bound.median as f64);
                row["met"] = json!(target.is_met(value.median, bound.median));
            }
            Err(why) => row["not_measured"] = json!(why),
        }
        row
    }
}

impl Target {
    /// Whether it is met, if there is one.
    fn is_met(self, value: u64, bound: u64) -> Option<bool> {
        let (measured, bound) = (value as f64, bound as f64);
        Some(match self {
            Self::Times(most) => measured <= most * bound,
            Self::Speed(least) => bound >= least * measured,
            Self::AtMost(most) => value <= most,
            Self::None => return None,
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Times(most) => write!(f, "<= {most} x"),
            Self::Speed(least) => write!(f, ">= {least} of the speed"),
            Self::AtMost(most) => write!(f, "<= {}", time(*most)),
            Self::None => Ok(()),
        }
    }
}

/// How the figure stands to its bound, in the terms of its target.
fn ratio(target: Target, value: u64, bound: u64) -> String {
    match target {
        Target::Speed(_) | Target::None => format!("{:.2} of the speed", bound as f64 / value as f64),
        Target::Times(_) | Target::AtMost(_) => format!("{:.2} x", value as f64 / bound as f64),
    }
}

/// Nanoseconds with three digits and a unit.
pub(crate) fn time(nanoseconds: u64) -> String {
    let (value, unit) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => (nanoseconds as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanoseconds as f64 / 1e6, "ms"),
        _ => (nanoseconds as f64 / 1e9, "s"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

/// A line for each figure, and what the bounds are.
pub(crate) fn table(rows: &[FigureRow<'_>]) -> String {
    let heading = ["figure", "median", "least", "90 %", "bound", "ratio", "target", ""].map(str::to_owned);
    let cells = rows.iter().filter_map(FigureRow::cells);
    let lines: Vec<Vec<String>> = std::iter::once(heading).chain(cells).map(Vec::from).collect();
    let sides: [Side; 8] = std::array::from_fn(|column| if column == 0 { Side::Left } else { Side::Right });
    let mut text = columns(&sides, &lines);
    text.push('\n');
    let name_width = rows.iter().map(|row| row.figure.name.len()).max().unwrap_or(0);
    for FigureRow { figure, outcome } in rows {
        text += &match outcome {
            Ok(_) => {
                format!("{:<name_width$}  {}; bound: {}\n", figure.name, figure.what, figure.bound_what)
            }
            Err(why) => format!("{:<name_width$}  not measured: {why}\n", figure.name),
        };
    }
    text
}

/// All of it, for programs to read, with how busy the computer was before.
pub(crate) fn json(
    rows: &[FigureRow<'_>],
    fabric: Fabric,
    repetitions: usize,
    load_before: Option<f64>,
) -> Value {
    json!({
        "machine": machine::facts(load_before),
        "fabric": fabric.name(),
        "repetitions": repetitions,
        "figures": rows.iter().map(FigureRow::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::figures;
    use super::super::samples::Samples;
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let texts = [7, 999, 1_234, 45_670, 999_000, 12_345_678, 2_500_000_000].map(time);
        assert_eq!(texts, ["7 ns", "999 ns", "1.23 us", "45.7 us", "999 us", "12.3 ms", "2.50 s"]);
    }

    #[test]
    fn targets_are_met_at_their_limits() {
        let met = |target: Target, values: [u64; 2], bound| values.map(|value| target.is_met(value, bound));
        assert_eq!(met(Target::Times(1.5), [150, 151], 100), [Some(true), Some(false)]);
        assert_eq!(met(Target::Speed(0.5), [200, 201], 100), [Some(true), Some(false)]);
        assert_eq!(met(Target::AtMost(60), [60, 61], 1), [Some(true), Some(false)]);
        assert_eq!(met(Target::None, [1, 1], 1), [None; 2]);
    }

    #[test]
    fn bounds_are_sums_and_lacks_are_named() {
        let figures = figures::all(Fabric::Shm);
        let figure = figures.iter().find(|figure| figure.name == "read-miss").unwrap();
        let samples = |name: &str, value| {
            let mut samples = Samples::default();
            samples.add(name, value);
            Ok(samples)
        };
        let mut results = Results::new();
        results.insert(figure.bound[0].runner.clone(), samples(figure.bound[0].name, 2_000));
        results.insert(figure.bound[1].runner.clone(), samples(figure.bound[1].name, 3_000));
        results.insert(figure.measured.runner.clone(), samples(figure.measured.name, 6_000));
        let row = FigureRow::new(figure, &results);
        assert_eq!(row.to_json()["times_bound"], 1.2);
        assert_eq!(row.to_json()["met"], true);
        let table = table(&[row]);
        assert!(
            table.contains("read-miss  6.00 us  6.00 us  6.00 us  5.00 us  1.20 x  <= 1.5 x  met"),
            "{table}"
        );

        results.insert(figure.bound[0].runner.clone(), Err("faults, natively: refused".to_owned()));
        let row = FigureRow::new(figure, &results);
        assert!(!row.is_measured());
        assert_eq!(row.to_json()["not_measured"], "faults, natively: refused");
    }
}
