//! The data of the page's script: numbers in columns, because there may be very many, and their names.

use super::{cells, limits, words};
use gondwana_analysis::{Analysis, Cell};
use serde::Serialize;
use std::fmt::Write;

/// The most blocks with ranges, those of the hottest areas; for other blocks the page shows addresses.
const MAX_RANGES: usize = 20_000;

#[derive(Serialize)]
struct Data<'a> {
    nodes: Vec<String>,
    threads: Vec<Thread>,
    areas: Vec<Area>,
    slots: &'a [super::time::Slot],
    cells: Columns,
    #[serde(flatten)]
    things: super::things::Things,
}

#[derive(Serialize)]
struct Thread {
    number: u32,
    node: u16,
    routine: String,
}

#[derive(Serialize)]
struct Area {
    name: String,
    /// First addresses and lengths, in turn.
    ranges: Vec<u64>,
}

/// The cells, an array for each of their fields.
#[derive(Default, Serialize)]
struct Columns {
    /// The first address of each cell, as the difference to the cell before it.
    step: Vec<u64>,
    unit: Vec<u8>,
    area: Vec<u32>,
    node: Vec<u16>,
    thread: Vec<u32>,
    reads: Vec<u32>,
    writes: Vec<u32>,
    bytes: Vec<u64>,
}

/// The data as JSON that may be inside a `script` element, with this many areas.
pub(super) fn json(analysis: &Analysis, cells: &[Cell], areas: usize, slots: &[super::time::Slot]) -> String {
    let threads = analysis.threads.iter().take(limits::MOST_THREADS);
    let data = Data {
        nodes: analysis.nodes.iter().take(limits::MOST_NODES).map(|node| words::name(&node.host)).collect(),
        threads: threads
            .map(|thread| Thread {
                number: thread.number,
                node: thread.node,
                routine: words::name(&thread.routine),
            })
            .collect(),
        areas: known(analysis, areas),
        slots,
        cells: columns(cells),
        things: super::things::things(analysis, areas),
    };
    let text = serde_json::to_string(&data).expect("numbers and texts are always JSON");
    harmless(&text)
}

/// JSON with the characters escaped that could end the HTML element or begin another. They occur in strings only.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a text does not fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text
}

fn known(analysis: &Analysis, areas: usize) -> Vec<Area> {
    let mut left = MAX_RANGES;
    let area = |area: &gondwana_analysis::Area| {
        let ranges: Vec<u64> = area
            .ranges
            .iter()
            .take(left)
            .flat_map(|range| [range.start, range.end.saturating_sub(range.start)])
            .collect();
        left -= ranges.len() / 2;
        Area { name: words::name(&area.name), ranges }
    };
    analysis.areas.iter().take(areas).map(area).collect()
}

fn columns(cells: &[Cell]) -> Columns {
    let mut columns = Columns::default();
    let mut before = 0;
    for cell in cells {
        columns.step.push(cell.address - before);
        before = cell.address;
        columns.unit.push(cell.unit);
        columns.area.push(cell.area);
        columns.node.push(cell.node);
        columns.thread.push(cell.thread);
        columns.reads.push(cell.reads);
        columns.writes.push(cell.writes);
        columns.bytes.push(cell.bytes);
    }
    columns
}

/// The cells of the page, and a sentence if cells were merged or left out.
pub(super) fn shown(analysis: &Analysis) -> (Vec<Cell>, Option<String>) {
    let (kept, unit) = cells::bounded(&analysis.cells, cells::LIMIT);
    let note = (unit > 0).then(|| {
        let length = gondwana_console::columns::amount(1 << unit);
        format!(
            "The picture shows units of at least {length}, because the recording has too many for one page."
        )
    });
    (kept, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_the_element() {
        let mut analysis = Analysis::default();
        let hostile = "</script><script>alert(1)</script><!--\u{2028}'\"&amp;";
        analysis
            .threads
            .push(gondwana_analysis::ThreadInfo { routine: hostile.to_owned(), ..Default::default() });
        let json = json(&analysis, &[], 0, &[]);
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["threads"][0]["routine"], hostile);
    }

    #[test]
    fn addresses_are_steps() {
        let cells = [64, 64, 128].map(|address| Cell { address, unit: 5, ..Cell::default() });
        assert_eq!(columns(&cells).step, [64, 0, 64]);
    }
}
