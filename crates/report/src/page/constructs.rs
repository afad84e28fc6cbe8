//! The table of constructs of OpenMP.

use super::{limits, words};
use gondwana_analysis::{Analysis, Construct};
use gondwana_console::columns::grouped;

/// A line of the table.
pub(super) struct ConstructRow {
    pub place: String,
    pub function: String,
    pub kind: &'static str,
    pub executions: String,
    pub worked: String,
    pub waited: String,
    pub slowest: String,
    /// How much longer the slowest thread worked than the average.
    pub ahead: String,
}

/// The constructs with the longest waits.
pub(super) fn rows(analysis: &Analysis) -> Vec<ConstructRow> {
    analysis.constructs.iter().take(limits::MOST_CONSTRUCTS).map(row).collect()
}

fn row(construct: &Construct) -> ConstructRow {
    let slowest = construct.slowest();
    ConstructRow {
        place: words::name(&construct.place),
        function: words::name(&construct.function),
        kind: if construct.region { "end of region" } else { "barrier" },
        executions: grouped(construct.executions),
        worked: words::seconds(construct.worked()),
        waited: words::seconds(construct.waited()),
        slowest: slowest.map_or_else(String::new, |slowest| {
            format!("thread {} on node {}", slowest.number, slowest.node)
        }),
        ahead: words::seconds(construct.ahead()),
    }
}
