//! The cost of the monitor as a table and as JSON.

use super::case::MonitorCase;
use super::confidence::CONFIDENCE;
use super::cost::{self, Cost};
use super::measure::Noted;
use super::overhead::{Estimate, Overhead, TARGET, Verdict};
use crate::chart::digits;
use crate::report::time;
use gondwana_console::columns::{Side, amount, columns, to_whole};
use serde_json::{Value, json};

/// What came of a case, or why nothing did.
pub(super) type MonitorOutcome = (MonitorCase, Result<Overhead, String>);

/// A line for each case, and what the columns are.
pub(super) fn table(
    nodes: u16,
    pairs: usize,
    cost: Cost,
    load: Option<f64>,
    outcomes: &[MonitorOutcome],
) -> String {
    let heading = [
        "case",
        "without",
        "with",
        "ratio",
        "95 %",
        "least",
        "processors",
        "noise",
        "transactions",
        "rows",
        "recording",
        "counted",
        "",
    ];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    lines.extend(outcomes.iter().filter_map(|(case, outcome)| Some(cells(case, outcome.as_ref().ok()?))));
    lines.extend(together(outcomes).map(|together| {
        let mut cells = vec![String::new(); 13];
        cells[0] = "all workloads".to_owned();
        [cells[3], cells[4]] = ratio(&together);
        cells[12] = in_table(together.verdict()).to_owned();
        cells
    }));
    let sides: [Side; 13] = std::array::from_fn(|column| if column == 0 { Side::Left } else { Side::Right });
    let load = load.map_or_else(String::new, |load| format!(", {load} threads wanted to run before"));
    let mut text = format!("{nodes} nodes, {pairs} pairs of runs{load}\n\n{}\n", columns(&sides, &lines));
    text += &format!(
        "\
without, with  median time of a run without the monitor and with it; for mechanisms, of one of them
ratio          time with the monitor : without, pair by pair: the median, and the least and greatest
95 %           where that median would be with ever so many pairs; nothing if there are fewer than six
least          the ratio of the least times; processors: of processor time
noise          by how much two runs without the monitor differ
counted        what the busiest node noted x {} ns, {} ns the first of a kind, and rows x {} ns to write one, as a part of
               the time without the monitor; {} filters would add {} ns to each transaction
target         <= {} of the time of a workload; met or missed if all of the interval of 95 % is on that side
all workloads  their pairs as those of one; a pair weighs half if two runs of its workload differ by twice as much
",
        digits(cost.again),
        digits(cost.new),
        digits(cost.row),
        cost::FILTERS,
        digits(cost.filters),
        percent(TARGET)
    );
    for (case, outcome) in outcomes {
        text += &match outcome {
            Ok(_) => format!("{:<14} {}\n", case.name, case.what),
            Err(why) => format!("{:<14} not measured: {why}\n", case.name),
        };
    }
    text
}

fn cells(case: &MonitorCase, overhead: &Overhead) -> Vec<String> {
    let Noted { transactions, rows, .. } = overhead.totals();
    let [ratio, interval] = ratio(&overhead.estimate);
    vec![
        case.name.to_owned(),
        time(to_whole(overhead.without.median)),
        time(to_whole(overhead.with.median)),
        ratio,
        interval,
        format!("{:.3}", overhead.least),
        format!("{:.3}", overhead.processors.median),
        overhead.noise.map(percent).unwrap_or_default(),
        transactions.to_string(),
        rows.to_string(),
        amount(overhead.recorded.bytes),
        overhead.counted.map(percent).unwrap_or_default(),
        if case.is_workload() { in_table(overhead.estimate.verdict()) } else { "" }.to_owned(),
    ]
}

/// What the workloads that were measured say together.
fn together(outcomes: &[MonitorOutcome]) -> Option<Estimate> {
    let workloads: Vec<_> = outcomes
        .iter()
        .filter(|(case, _)| case.is_workload())
        .filter_map(|(_, outcome)| outcome.as_ref().ok())
        .collect();
    Estimate::of_all(&workloads)
}

/// The ratio, and the interval where it is.
fn ratio(Estimate { ratio, confidence }: &Estimate) -> [String; 2] {
    let interval = confidence.map(|(low, high)| format!("{low:.3} to {high:.3}"));
    [format!("{:.3} ({:.3} to {:.3})", ratio.median, ratio.min, ratio.max), interval.unwrap_or_default()]
}

/// What is missed catches the eye.
fn in_table(shown: Verdict) -> &'static str {
    if shown == Verdict::Missed { "MISSED" } else { verdict(shown) }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::Unclear => "unclear",
        Verdict::Missed => "missed",
    }
}

fn percent(part: f64) -> String {
    format!("{} %", digits(100.0 * part))
}

/// All of it, for programs to read; `machine` is what the figures are from.
pub(super) fn json(
    machine: Value,
    nodes: u16,
    pairs: usize,
    cost: Cost,
    outcomes: &[MonitorOutcome],
) -> Value {
    json!({
        "machine": machine,
        "nodes": nodes,
        "pairs": pairs,
        "nanoseconds_to": { "note_new": cost.new, "note_again": cost.again, "write_row": cost.row, "count_with_filters": cost.filters },
        "target": TARGET,
        "cases": outcomes.iter().map(case_json).collect::<Vec<_>>(),
        "all_workloads": together(outcomes).map(|together| json!({
            "ratio": together.ratio,
            "confidence": confidence_json(&together),
            "verdict": verdict(together.verdict()),
        })),
    })
}

fn confidence_json(estimate: &Estimate) -> Value {
    json!({ "level": CONFIDENCE, "interval": estimate.confidence })
}

fn case_json((case, outcome): &MonitorOutcome) -> Value {
    let mut row = json!({ "name": case.name, "what": case.what, "workload": case.is_workload() });
    match outcome {
        Err(why) => row["not_measured"] = json!(why),
        Ok(overhead) => {
            let Noted { transactions, times, rows } = overhead.totals();
            row["nanoseconds"] = json!({ "without": overhead.without, "with": overhead.with });
            row["nanoseconds_of_pairs"] =
                overhead.pairs.iter().map(|pair| json!([pair.without.time, pair.with.time])).collect();
            row["ratio"] = json!(overhead.estimate.ratio);
            row["confidence"] = confidence_json(&overhead.estimate);
            row["ratio_of_least"] = json!(overhead.least);
            row["processor_time_ratio"] = json!(overhead.processors);
            row["noise"] = json!(overhead.noise);
            row["transactions"] = json!(transactions);
            row["times_noted"] = json!(times);
            row["rows"] = json!(rows);
            row["recording_bytes"] = json!(overhead.recorded.bytes);
            row["counted"] = json!(overhead.counted);
            if case.is_workload() {
                row["verdict"] = json!(verdict(overhead.estimate.verdict()));
            }
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::super::case;
    use super::super::overhead::tests::overhead;
    use super::*;

    const COST: Cost = Cost { new: 101.0, again: 10.0, row: 23.4, filters: 31.0 };

    fn outcomes() -> Vec<MonitorOutcome> {
        let all = case::all();
        let named = |name: &str| *all.iter().find(|case| case.name == name).unwrap();
        vec![
            (named("read-miss"), Ok(overhead(&[(4_000, 5_000)]))),
            (named("sor"), Ok(overhead(&[(1_000_000, 1_009_000); 6]))),
            (named("lu"), Err("stuck for 60 s".to_owned())),
            (named("jacobi"), Ok(overhead(&[(1_000_000, 1_001_000); 8]))),
        ]
    }

    #[test]
    fn targets_are_for_workloads_and_lacks_are_named() {
        let table = table(2, 5, COST, Some(0.5), &outcomes());
        assert!(table.starts_with("2 nodes, 5 pairs of runs, 0.5 threads wanted to run before\n"), "{table}");
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("read-miss").ends_with(" %"), "{table}");
        assert!(
            line("sor").contains("1.009 (1.009 to 1.009)  1.009 to 1.009") && line("sor").ends_with("met"),
            "{table}"
        );
        // Eight pairs of one and six of the other.
        assert!(line("all workloads").contains("1.001 (1.001 to 1.009)  1.001 to 1.009"), "{table}");
        assert_eq!(line("lu"), "lu             not measured: stuck for 60 s");
        assert!(table.contains("noted x 10 ns, 101 ns the first of a kind, and rows x 23.4 ns"), "{table}");
    }

    #[test]
    fn json_has_all_of_it() {
        let json = json(json!({}), 2, 5, COST, &outcomes());
        assert_eq!(json["nanoseconds_to"]["note_new"], 101.0);
        assert_eq!(json["cases"][0]["verdict"], Value::Null);
        assert_eq!(json["cases"][0]["confidence"]["interval"], Value::Null);
        assert_eq!(json["cases"][1]["confidence"]["interval"], json!([1.009, 1.009]));
        assert_eq!(json["cases"][1]["verdict"], "met");
        let noted = ["transactions", "times_noted", "rows"].map(|of| json["cases"][1][of].as_u64().unwrap());
        assert_eq!(noted, [9_000, 4_000, 110]);
        assert_eq!(json["cases"][1]["nanoseconds_of_pairs"][5], json!([1_000_000, 1_009_000]));
        assert_eq!(json["cases"][2]["not_measured"], "stuck for 60 s");
        assert_eq!(json["all_workloads"]["confidence"]["interval"], json!([1.001, 1.009]));
        assert_eq!(json["all_workloads"]["verdict"], "met");
    }
}
