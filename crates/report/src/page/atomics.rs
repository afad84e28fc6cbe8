//! The table of atomic variables.

use super::{limits, words};
use gondwana_analysis::{Analysis, AtomicVariable, CodePlace};
use gondwana_console::columns::grouped;

/// A line of the table.
pub(super) struct AtomicRow {
    pub name: String,
    pub address: String,
    pub misses: String,
    pub nodes: String,
    pub places: Vec<Place>,
}

/// Where nodes missed the variable.
pub(super) struct Place {
    pub text: String,
    pub misses: String,
}

/// The variables with most misses.
pub(super) fn rows(analysis: &Analysis) -> Vec<AtomicRow> {
    analysis.atomics.iter().take(limits::MOST_ATOMICS).map(row).collect()
}

fn row(variable: &AtomicVariable) -> AtomicRow {
    AtomicRow {
        name: words::name(&variable.name),
        address: format!("{:#x}", variable.address),
        misses: grouped(variable.misses()),
        nodes: words::by_node(&variable.nodes),
        places: variable.places.iter().take(limits::MOST_PLACES).map(place).collect(),
    }
}

fn place(place: &CodePlace) -> Place {
    Place { text: words::name(&place.text), misses: grouped(place.reads.saturating_add(place.writes)) }
}
