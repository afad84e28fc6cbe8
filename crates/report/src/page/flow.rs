//! Who sends how much to whom.

use super::limits::MOST_NODES;
use super::words;
use gondwana_analysis::{Analysis, Flow};
use gondwana_console::columns::to_whole;

/// The number of shades; 0 is none.
const HEATS: u64 = 9;

/// One sender.
pub(super) struct FlowRow {
    pub host: String,
    pub cells: Vec<Cell>,
}

/// The data that one node has sent to another.
pub(super) struct Cell {
    pub bytes: String,
    pub title: String,
    pub heat: u64,
    pub itself: bool,
}

/// The rows of the table, by sender.
pub(super) fn matrix(analysis: &Analysis) -> Vec<FlowRow> {
    let rows = analysis.flows.iter().take(MOST_NODES);
    let hottest =
        rows.clone().flat_map(|row| row.iter().take(MOST_NODES)).map(|flow| flow.bytes).max().unwrap_or(0);
    let host = |node: usize| analysis.nodes.get(node).map(|node| words::name(&node.host)).unwrap_or_default();
    rows.enumerate()
        .map(|(from, row)| FlowRow {
            host: host(from),
            cells: row
                .iter()
                .take(MOST_NODES)
                .enumerate()
                .map(|(to, flow)| cell(from, to, flow, hottest))
                .collect(),
        })
        .collect()
}

fn cell(from: usize, to: usize, flow: &Flow, hottest: u64) -> Cell {
    let share = flow.bytes as f64 / hottest.max(1) as f64;
    let heat = if flow.bytes == 0 { 0 } else { to_whole((share * HEATS as f64).ceil()).clamp(1, HEATS) };
    let [pages, diffs, notices] = [
        words::things(flow.pages, "page", "pages"),
        words::things(flow.diffs, "diff", "diffs"),
        words::things(flow.notices, "write notice", "write notices"),
    ];
    Cell {
        bytes: if flow.bytes == 0 { "0".to_owned() } else { gondwana_console::columns::amount(flow.bytes) },
        title: format!("node {from} to node {to}: {pages}, {diffs}, {notices}"),
        heat,
        itself: from == to,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_is_in_proportion_to_the_hottest() {
        let flow = |bytes| Flow { bytes, ..Flow::default() };
        let flows = vec![vec![flow(0), flow(900)], vec![flow(1), flow(450)]];
        let rows = matrix(&Analysis { flows, ..Analysis::default() });
        let heats: Vec<u64> = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.heat).collect();
        assert_eq!(heats, [0, 9, 1, 5]);
    }
}
