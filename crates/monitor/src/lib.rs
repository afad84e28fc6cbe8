//! The remote-access monitor of one node, after the Opium card (Olifant, section 2): it watches the transactions that
//! cross between nodes, and counts those that its filters are about. It decides nothing.
//!
//! No I/O, no clock and no lock: whoever sees the transactions tells of them.

#![forbid(unsafe_code)]

mod journal;
mod misses;
mod transaction;

pub use journal::{Journal, Like, Tally};
pub use misses::Misses;
pub use transaction::{Direction, Kind, Kinds, Transaction};
