//! How much a counter bank holds. `tests/loom.rs` replaces this module by one with small numbers.

/// The most filters of a bank.
pub const MOST_FILTERS: usize = 64;

/// The counters of a bank, one for each unit of its filters.
pub const COUNTERS: usize = 512 << 10;

/// The secondary counters of a bank: a multiple of four, which share a word.
pub const SECONDARIES: usize = 16;

/// Threshold events that can wait to be handled, a power of two.
pub(crate) const EVENTS: u64 = 1024;
