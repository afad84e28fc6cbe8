//! The counters of the nodes, as a table and as JSON.
//!
//! Each node reports an object of named numbers, or of objects of them to any depth. The table has one row for each
//! number, in alphabetical order; rows that are all zero are left out, except those of [`ALWAYS`]. The JSON keeps the
//! nodes' names, and the table has the glossary's term where the two differ ([`TERMS`]).

use gondwana_console::columns::grouped;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The version of the JSON: one more whenever a name or a meaning changes.
const VERSION: u32 = 1;

/// Names in the JSON, which is a format, and the terms that the table has for them.
const TERMS: [(&str, &str); 1] = [("pages visits", "pages one-sided reads")];

/// Rows that the table shows even if they are zero on all nodes.
const ALWAYS: [&str; 10] = [
    "diffs bytes",
    "diffs sent",
    "faults read",
    "faults write",
    "locks local",
    "locks remote",
    "notices sent",
    "pages invalidations",
    "pages transfers",
    "threads barrier arrivals",
];

/// The most nodes that get a column each.
const MOST_COLUMNS: usize = 8;

/// The atomic instructions of a program and its own libraries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicInstructions {
    /// How many there are.
    pub found: usize,
    /// How many of these are executed under the lock of a page. The others are executed as they are.
    pub locked: usize,
}

/// The facts of a run and its counters.
#[derive(Debug)]
pub(crate) struct Summary {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// How nodes talked.
    pub fabric: &'static str,
    /// Which consistency ran.
    pub consistency: &'static str,
    /// Why.
    pub reason: String,
    /// Its atomic instructions; `None` if nobody has looked for them.
    pub atomics: Option<AtomicInstructions>,
    /// How faults were raised.
    pub mechanism: &'static str,
    /// Its time, measured by the launcher.
    pub seconds: f64,
    /// The counters of each node; `None` for a node that ended without reporting them.
    pub nodes: Vec<Option<Value>>,
}

impl Summary {
    /// The JSON document.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "version": VERSION,
            "program": self.program,
            "node_count": self.nodes.len(),
            "fabric": self.fabric,
            "consistency": self.consistency,
            "consistency_reason": self.reason,
            "atomic_instructions":
                self.atomics.map(|atomics| json!({"found": atomics.found, "locked": atomics.locked})),
            "mechanism": self.mechanism,
            "seconds": self.seconds,
            "nodes": self.nodes,
            "total": self.total(),
        })
    }

    /// The sum over all nodes, in the same shape as each node's counters.
    fn total(&self) -> Value {
        let mut total = Value::Object(Map::new());
        for node in self.nodes.iter().flatten() {
            add(&mut total, node);
        }
        total
    }

    /// A table for people: a row for each counter that has counted, a column for each node and their sum.
    pub(crate) fn to_table(&self) -> String {
        let mut text = String::new();
        let count = self.nodes.len();
        let plural = if count == 1 { "" } else { "s" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{count} node{plural} over {}, {} ({}), {}, {:.3} s",
            self.fabric, self.consistency, self.reason, self.mechanism, self.seconds
        );
        if let Some(AtomicInstructions { found, locked }) = self.atomics.filter(|atomics| atomics.found > 0) {
            let _ = writeln!(
                text,
                "atomic instructions: {found} found, {locked} executed under a lock, {} as they are",
                found - locked
            );
        }
        let silent: Vec<_> =
            (0..count).filter(|&node| self.nodes[node].is_none()).map(|n| n.to_string()).collect();
        if !silent.is_empty() {
            let _ =
                writeln!(text, "no counters from node {}: the run did not end in order", silent.join(", "));
        }
        let columns: Vec<Vec<(String, u64)>> =
            self.nodes.iter().map(|node| node.as_ref().map(flatten).unwrap_or_default()).collect();
        let total = flatten(&self.total());
        if total.is_empty() {
            let _ = writeln!(text, "nothing crossed between nodes");
            return text;
        }
        let worth_showing = |(name, sum): &&(String, u64)| *sum > 0 || ALWAYS.contains(&name.as_str());
        let rows = total.iter().filter(worth_showing).map(|(name, sum)| {
            let of = |column: &Vec<(String, u64)>| {
                column.iter().find(|(other, _)| other == name).map_or(0, |(_, value)| *value)
            };
            let values: Vec<u64> = columns.iter().map(of).collect();
            let mut cells = vec![name.clone()];
            if count <= MOST_COLUMNS {
                cells.extend(values.iter().map(|value| grouped(*value)));
            } else {
                cells.push(grouped(values.iter().copied().min().unwrap_or(0)));
                cells.push(grouped(values.iter().copied().max().unwrap_or(0)));
            }
            cells.push(grouped(*sum));
            cells
        });
        let mut header = vec![String::new()];
        if count <= MOST_COLUMNS {
            header.extend((0..count).map(|node| format!("node {node}")));
        } else {
            header.extend(["least".to_owned(), "most".to_owned()]);
        }
        header.push("total".to_owned());
        align(&mut text, &std::iter::once(header).chain(rows).collect::<Vec<_>>());
        text
    }
}

/// Adds the numbers of `more` to those of `sum`; missing ones are copied.
fn add(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            for (name, value) in more {
                match sum.get_mut(name) {
                    Some(old) => add(old, value),
                    None => {
                        sum.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (sum @ Value::Number(_), Value::Number(_)) => {
            let number = |value: &Value| value.as_u64().unwrap_or(0);
            *sum = number(sum).saturating_add(number(more)).into();
        }
        _ => {}
    }
}

/// The numbers with the table's names of their rows, in alphabetical order.
fn flatten(value: &Value) -> Vec<(String, u64)> {
    fn walk(value: &Value, path: &str, out: &mut Vec<(String, u64)>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let name = name.replace('_', " ");
                    walk(member, &if path.is_empty() { name } else { format!("{path} {name}") }, out);
                }
            }
            _ => {
                if let Some(number) = value.as_u64() {
                    let term = TERMS.iter().find(|(name, _)| *name == path).map_or(path, |(_, term)| term);
                    out.push((term.to_owned(), number));
                }
            }
        }
    }
    let mut out = vec![];
    walk(value, "", &mut out);
    out.sort_unstable();
    out
}

/// Writes rows with the first column to the left and the others to the right.
fn align(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(nodes: Vec<Option<Value>>) -> Summary {
        Summary {
            program: vec!["sor".to_owned(), "1000".to_owned()],
            fabric: "shm",
            consistency: "rc",
            reason: "no inline atomic instruction".to_owned(),
            atomics: None,
            mechanism: "userfaultfd",
            seconds: 1.5,
            nodes,
        }
    }

    #[test]
    fn the_table_has_a_column_for_each_node_and_the_sum() {
        let table = summary(vec![
            Some(json!({"faults": {"read": 1200, "write": 3}, "messages": {"fetch": {"count": 7}}})),
            Some(json!({"faults": {"read": 34, "write": 0}, "time_us": 5})),
        ])
        .to_table();
        assert_eq!(
            table,
            "2 nodes over shm, rc (no inline atomic instruction), userfaultfd, 1.500 s\n\
             \x20                     node 0  node 1  total\n\
             faults read            1,200      34  1,234\n\
             faults write               3       0      3\n\
             messages fetch count       7       0      7\n\
             time us                    0       5      5\n"
        );
    }

    #[test]
    fn rows_of_zeros_are_left_out_unless_they_are_news() {
        let counters = json!({"pages": {"transfers": 0, "twins": 0}, "messages": {"sc": {"count": 0}}});
        let table = summary(vec![Some(counters)]).to_table();
        let names: Vec<_> = table.lines().skip(2).map(|line| line.trim_end_matches([' ', '0'])).collect();
        assert_eq!(names, ["pages transfers"]);
    }

    #[test]
    fn the_table_has_the_term_of_the_field_where_the_json_keeps_an_old_name() {
        let summary = summary(vec![Some(json!({"pages": {"home_moves": 1, "transfers": 5, "visits": 4}}))]);
        let table = summary.to_table();
        let rows: Vec<_> = table.lines().skip(2).map(|line| line.split("  ").next().unwrap()).collect();
        assert_eq!(rows, ["pages home moves", "pages one-sided reads", "pages transfers"]);
        assert_eq!(summary.to_json()["total"]["pages"]["visits"], 4);
    }

    #[test]
    fn many_nodes_are_summed_up() {
        let nodes = (0..20u64).map(|node| Some(json!({"barriers": node}))).collect();
        let table = summary(nodes).to_table();
        let row = table.lines().last().unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["barriers", "0", "19", "190"]);
    }

    #[test]
    fn atomic_instructions_are_counted_by_how_they_are_executed() {
        let mut summary = summary(vec![Some(json!({"barriers": 1}))]);
        summary.atomics = Some(AtomicInstructions { found: 5, locked: 3 });
        let line = "atomic instructions: 5 found, 3 executed under a lock, 2 as they are";
        assert_eq!(summary.to_table().lines().nth(1), Some(line));
        assert_eq!(summary.to_json()["atomic_instructions"], json!({"found": 5, "locked": 3}));
        summary.atomics = Some(AtomicInstructions { found: 0, locked: 0 });
        assert!(!summary.to_table().contains("atomic instructions"));
    }

    #[test]
    fn silent_nodes_are_named() {
        let table = summary(vec![Some(json!({"barriers": 1})), None]).to_table();
        assert!(table.contains("no counters from node 1"), "{table}");
        assert!(summary(vec![Some(json!({}))]).to_table().ends_with("nothing crossed between nodes\n"));
    }

    #[test]
    fn the_json_has_facts_nodes_and_totals() {
        let value = summary(vec![Some(json!({"a": {"b": 1}})), None, Some(json!({"a": {"b": 2}}))]).to_json();
        assert_eq!(value["total"], json!({"a": {"b": 3}}));
        assert_eq!(value["nodes"][1], Value::Null);
        assert_eq!(value["node_count"], 3);
        assert_eq!(value["version"], 1);
        assert_eq!(value["consistency_reason"], "no inline atomic instruction");
    }
}
