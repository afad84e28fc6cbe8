//! The remote-access monitor of one node, after the Opium card (Olifant, section 2): it watches the transactions that
//! cross between nodes, and counts those that its filters are about. It decides nothing.
//!
//! No I/O, no clock and no lock: whoever sees the transactions tells of them.

#![forbid(unsafe_code)]

mod board;
mod events;
mod filter;
mod heat;
mod journal;
mod misses;
mod panel;
#[cfg(test)]
mod panel_tests;
mod refine;
mod stride;
mod transaction;
mod zoom;
#[cfg(test)]
mod zoom_tests;

pub use board::{Board, COUNTERS, MOST_FILTERS, SECONDARIES};
pub use events::Event;
pub use filter::{
    Area, Directions, Filter, FilterError, FilterText, FilterTextError, LARGEST_UNIT, SMALLEST_UNIT,
    Threshold,
};
pub use journal::{Journal, Like, Tally};
pub use misses::Misses;
pub use panel::{FilterId, Panel, SecondaryId};
pub use refine::{Refine, Units};
pub use stride::Stride;
pub use transaction::{Direction, Kind, Kinds, Transaction, UnknownKind};
pub use zoom::{Watch, Zoom};
