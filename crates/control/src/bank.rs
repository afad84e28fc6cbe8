//! Requests of the program's threads to the counter banks of all nodes.
//!
//! The launcher passes each request on, so that all nodes carry out the same ones in the same order, and puts their answers
//! together.

use gondwana_monitor::{Filter, FilterError, Kinds};
use serde::{Deserialize, Serialize};

/// Counters that one answer has at most: as decimal numbers of 64 bits they fit into a datagram.
pub const MOST_COUNTERS: u32 = 4096;

/// A change of all counter banks, or a question to all or one. The launcher numbers filters and secondary counters, alike
/// on all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BankRequest {
    /// Sets a filter; the answer is its number.
    Set {
        /// The filter.
        filter: Filter,
        /// The asking node's number for the callback that runs when a threshold is reached, on any node; `None` without one.
        token: Option<u64>,
    },
    /// Takes a filter away.
    Remove {
        /// Its number.
        filter: u8,
    },
    /// Reads counters of a filter, at most [`MOST_COUNTERS`].
    Read {
        /// Its number.
        filter: u8,
        /// The node that is asked; `None` for the sum of all.
        node: Option<u16>,
        /// The first counter, from that of the first unit.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Begins a secondary counter; the answer is its number.
    Shadow {
        /// The numbers of the filters.
        filters: Vec<u8>,
        /// The kinds of transactions.
        kinds: Kinds,
    },
    /// Reads a secondary counter.
    Secondary {
        /// Its number.
        secondary: u8,
        /// The node that is asked; `None` for the sum of all.
        node: Option<u16>,
    },
    /// Ends a secondary counter.
    Unshadow {
        /// Its number.
        secondary: u8,
    },
}

/// Why counter banks refuse a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BankError {
    /// Of the filter, or of the counter bank.
    Filter(FilterError),
    /// An error number and a sentence.
    Refused(i32, String),
}

impl From<FilterError> for BankError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

/// Numbers, as many as the request is about.
pub type BankAnswer = Result<Vec<u64>, BankError>;

/// A counter has reached its threshold, on any node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// See [`BankRequest::Set`].
    pub token: u64,
    /// The number of the filter.
    pub filter: u8,
    /// The first address of the unit.
    pub address: u64,
    /// What the counter has reached.
    pub count: u64,
}
