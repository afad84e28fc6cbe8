//! Constructs beside each other, as a table and as JSON.

use super::measure::Way;
use crate::report::time;
use gondwana_console::columns::{Side, columns};
use serde_json::{Map, Value, json};

/// The constructs, with what the program does with each.
const CONSTRUCTS: [(&str, &str); 12] = [
    ("parallel", "a region that does nothing"),
    ("barrier", "a barrier in a region"),
    ("static", "a loop with schedule(static)"),
    ("runtime", "a loop with schedule(static, 1) that is set while the program runs"),
    ("dynamic", "a loop of 64 iterations with schedule(dynamic)"),
    ("guided", "a loop of 64 iterations with schedule(guided)"),
    ("sections", "four sections"),
    ("single", "single"),
    ("copyprivate", "single with copyprivate"),
    ("critical", "critical, for each thread"),
    ("ordered", "a loop of 8 ordered iterations"),
    ("dirty", "a region whose threads write to 64 pages"),
];

fn name(way: &Way) -> &'static str {
    way.fabric.map_or("native", |fabric| fabric.name())
}

/// A line for each construct: medians, and how much longer nodes take.
pub(super) fn table(nodes: u16, rounds: u16, ways: &[Way]) -> String {
    let mut heading = vec!["construct".to_owned()];
    let mut sides = vec![Side::Left];
    for way in ways {
        heading.push(name(way).to_owned());
        sides.push(Side::Right);
        if way.fabric.is_some() {
            heading.push("ratio".to_owned());
            sides.push(Side::Right);
        }
    }
    heading.push(String::new());
    sides.push(Side::Left);
    let mut lines = vec![heading];
    for (construct, what) in CONSTRUCTS {
        let mut line = vec![construct.to_owned()];
        let native = ways.first().and_then(|way| way.samples.summary(construct));
        for way in ways {
            let summary = way.samples.summary(construct);
            line.push(summary.map_or_else(|| "-".to_owned(), |summary| time(summary.median)));
            if way.fabric.is_some() {
                let ratio = summary.zip(native);
                line.push(ratio.map_or_else(
                    || "-".to_owned(),
                    |(summary, native)| {
                        format!("{:.1} x", summary.median as f64 / native.median.max(1) as f64)
                    },
                ));
            }
        }
        line.push(what.to_owned());
        lines.push(line);
    }
    let plural = if rounds == 1 { "" } else { "s" };
    let mut text = format!(
        "{nodes} threads, each on a node of its own but natively; medians of {rounds} round{plural}\n\n{}\n",
        columns(&sides, &lines)
    );
    for way in ways {
        if let Some(why) = &way.failed {
            text += &format!("{} was not measured: {why}\n", name(way));
        }
    }
    text
}

/// All figures in nanoseconds.
pub(super) fn json(machine: Value, nodes: u16, rounds: u16, ways: &[Way]) -> Value {
    let constructs = |way: &Way| -> Map<String, Value> {
        let summary = |(construct, _): &(&str, &str)| {
            Some(((*construct).to_owned(), json!(way.samples.summary(construct)?)))
        };
        CONSTRUCTS.iter().filter_map(summary).collect()
    };
    let ways: Map<String, Value> = ways
        .iter()
        .map(|way| {
            let figures = match &way.failed {
                None => Value::Object(constructs(way)),
                Some(why) => json!({ "not_measured": why }),
            };
            (name(way).to_owned(), figures)
        })
        .collect();
    json!({ "machine": machine, "nodes": nodes, "rounds": rounds, "constructs_ns": ways })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Samples;
    use gondwana_launcher::run::options::Fabric;

    #[test]
    fn constructs_stand_beside_the_native_ones() {
        let way = |fabric, text: &str| {
            let mut samples = Samples::default();
            assert!(samples.add_lines(text));
            Way { fabric, samples, failed: None }
        };
        let mut ways = [way(None, "barrier 200\nsingle 100"), way(Some(Fabric::Shm), "barrier 300")];
        let text = table(2, 1, &ways);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("barrier").contains("200 ns  300 ns  1.5 x"), "{text}");
        assert!(line("single").contains("100 ns       -      -"), "{text}");
        let figures = json(Value::Null, 2, 1, &ways);
        assert_eq!(figures["constructs_ns"]["shm"]["barrier"]["median"], 300);
        ways[1].failed = Some("stuck for 60 s".to_owned());
        assert!(table(2, 1, &ways).ends_with("\nshm was not measured: stuck for 60 s\n"));
        assert_eq!(json(Value::Null, 2, 1, &ways)["constructs_ns"]["shm"]["not_measured"], "stuck for 60 s");
    }
}
