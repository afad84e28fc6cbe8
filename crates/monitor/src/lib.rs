//! The remote-access monitor of one node, after the Opium card (Olifant, section 2): it classifies the transactions that
//! cross between nodes, and counts those that match a filter. It decides nothing.
//!
//! No I/O and no clock: the caller passes transactions and times. The only state that threads share without a lock of the
//! caller's is the [`CounterBank`].

#![forbid(unsafe_code)]

mod aggregation_table;
mod bank_configuration;
#[cfg(test)]
mod bank_configuration_tests;
mod counter_bank;
mod filter;
mod filter_refinement;
#[cfg(test)]
mod filter_refinement_tests;
mod heat;
mod misses;
mod partition;
mod primitive;
mod sizes;
mod threshold_events;
#[cfg(test)]
mod threshold_events_tests;
mod transaction;
mod unit_refinement;

pub use aggregation_table::{Aggregate, AggregateKey, AggregationTable};
pub use bank_configuration::{BankConfiguration, FilterId, SecondaryId};
pub use counter_bank::CounterBank;
pub use filter::{
    Area, Directions, Filter, FilterError, FilterText, FilterTextError, LARGEST_UNIT, SMALLEST_UNIT,
    Threshold,
};
pub use filter_refinement::{FilterRefinement, RetiredFilter};
pub use misses::Misses;
pub use partition::Partition;
pub use sizes::{COUNTERS, MOST_FILTERS, SECONDARIES};
pub use threshold_events::ThresholdEvent;
pub use transaction::{Direction, Kind, Kinds, Transaction, UnknownKind};
pub use unit_refinement::{UnitRefinement, Units};
